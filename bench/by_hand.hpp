// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls of PJRT written by hand, which the part backends compares the library's calls with.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <xla/ext/pjrt/abi.hpp>

namespace bench {

namespace abi = xla::ext::pjrt::abi;

/// The least code with which a program can run steps on donated state by an XLA plugin, to measure
/// the overhead of the library. Nothing is checked, and an error ends the process.
class by_hand {
  using buffer = abi::buffer;

 public:
  explicit by_hand(const std::string& plugin) {
    setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
    void* const library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto get =
        reinterpret_cast<const abi::table* (*)()>(library ? dlsym(library, "GetPjrtApi") : nullptr);
    if (!get) fail("the plugin cannot be loaded");
    table_ = get();
    abi::padded<abi::about<void>> begin;
    call(abi::entry::plugin_initialize, begin);
    abi::named_value options[2];
    options[0].name = "cpu_device_count", options[0].name_size = 16;
    options[0].kind = abi::value_kind::int64, options[0].int64 = 1;
    options[1].name = "asynchronous", options[1].name_size = 12;
    options[1].kind = abi::value_kind::boolean, options[1].boolean = false;
    abi::padded<abi::client_create> made;
    made->options = options;
    made->option_count = 2;
    call(abi::entry::client_create, made);
    client_ = made->made;
    abi::padded<abi::addressable_devices> all;
    all->of = client_;
    call(abi::entry::client_addressable_devices, all);
    device_ = all->devices[0];
  }

  /// The program that runs from now on.
  void compile(std::string_view text) {
    abi::padded<abi::program> source;
    source->code = text.data(), source->code_size = text.size();
    source->format = "mlir", source->format_size = 4;
    abi::padded<abi::client_compile> a;
    a->by = client_;
    a->source = &source.given;
    a->options = "\x1a\x04\x20\x01\x28\x01", a->options_size = 6;
    call(abi::entry::client_compile, a);
    program_ = a->made;
  }
  buffer* put(const float* data, std::int64_t n) {
    abi::padded<abi::buffer_from_host> a;
    a->by = client_;
    a->data = data;
    a->type = abi::element::float32;
    a->sizes = &n;
    a->rank = 1;
    a->on = device_;
    call(abi::entry::client_buffer_from_host, a);
    await(a->host_is_free);
    return a->made;
  }
  /// Has as many results as arguments; the arguments are donated.
  void run(std::vector<buffer*>& state) {
    results_.resize(state.size());
    buffer* const* const arguments = state.data();
    buffer** const results = results_.data();
    abi::event* done = nullptr;
    abi::padded<abi::execute_options> options;
    abi::padded<abi::execute> a;
    a->program = program_;
    a->options = &options.given;
    a->arguments = &arguments;
    a->devices = 1;
    a->argument_count = state.size();
    a->results = &results;
    a->done = &done;
    call(abi::entry::loaded_execute, a);
    await(done);
    for (buffer* b : state) destroy(abi::entry::buffer_destroy, b);
    state.swap(results_);
  }
  void read(const buffer* b, float* to, std::size_t n) {
    abi::padded<abi::buffer_to_host> a;
    a->from = b;
    a->to = to;
    a->size = n * sizeof(float);
    call(abi::entry::buffer_to_host, a);
    await(a->done);
  }

 private:
  template <class A>
  void call(abi::entry e, abi::padded<A>& a) const {
    if ((&table_->first_entry)[static_cast<int>(e)](&a)) fail("the plugin refuses a call");
  }
  template <class Of>
  void destroy(abi::entry e, Of* what) const {
    abi::padded<abi::about<Of>> a;
    a->of = what;
    call(e, a);
  }
  void await(abi::event* e) const {
    abi::padded<abi::about<abi::event>> a;
    a->of = e;
    call(abi::entry::event_await, a);
    destroy(abi::entry::event_destroy, e);
  }
  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "by hand: %s\n", why);
    std::exit(1);
  }

  const abi::table* table_ = nullptr;
  abi::client* client_ = nullptr;
  abi::device* device_ = nullptr;
  abi::loaded* program_ = nullptr;
  std::vector<buffer*> results_;
};

}  // namespace bench
