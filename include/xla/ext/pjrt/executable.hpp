// SPDX-License-Identifier: Apache-2.0
#pragma once

// A compiled and loaded program of a plugin, close to PJRT's own interface. compiled.hpp makes it
// an executable of this library.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/buffer.hpp"
#include "xla/ext/pjrt/client.hpp"
#include "xla/ext/pjrt/signature.hpp"

namespace xla::ext::pjrt {

/// Bytes that a program needs on each device.
struct program_memory {
  std::int64_t code = 0, arguments = 0, results = 0;
  std::int64_t aliased = 0;  ///< of results that share memory with arguments
  std::int64_t temporaries = 0;
};

/// A program that is compiled and loaded for devices of a client; client::compile() makes it.
/// Several threads may run it at once.
class executable {
 public:
  /// Takes ownership of an executable that a plugin has loaded.
  executable(const client& c, abi::loaded* it, std::string_view text);
  executable(const executable&) = delete;
  ~executable() { release(); }

  const client& on() const { return client_; }
  const std::vector<parameter>& parameters() const { return parameters_; }
  const std::vector<array_type>& results() const { return results_; }
  /// The number of devices that run it together.
  int devices() const { return devices_; }
  program_memory memory() const;
  /// The compiled code in the plugin's format; client::load() and XLA_CACHE read it.
  std::string serialize() const;

  /// Runs it on a device, and waits. Arguments that the program's text marks as donated are gone
  /// afterwards; if the run is refused, nothing has happened. Throws `xla::runtime_error` for
  /// arguments of other types than the program has, `xla::out_of_memory`, and `pjrt::error`.
  std::vector<buffer> run(std::span<buffer* const> arguments) const;
  std::vector<buffer> run(std::initializer_list<buffer*> arguments) const {
    return run(std::span(arguments.begin(), arguments.size()));
  }
  /// On all of its devices: arguments[device][argument] give results[device][result].
  std::vector<std::vector<buffer>> run_all(std::span<const std::vector<buffer*>> arguments) const;

  /// A list of arguments and of results for each device. Nothing is checked; XLA compares only the
  /// arguments' bytes. non_donatable: the numbers of arguments that are not donated, whatever the
  /// text says. in_flight: receives an event for each device, which ends with the run or carries
  /// its error; nullptr: the function waits.
  void execute_all(abi::buffer* const* const* arguments, abi::buffer** const* results,
                   std::span<const std::int64_t> non_donatable = {},
                   abi::event** in_flight = nullptr) const;

 private:
  void release() noexcept { client_.loaded_plugin().destroy(abi::entry::loaded_destroy, it_); }
  void read_devices();
  void read_results();
  void check(std::span<buffer* const> arguments, int device) const;
  [[noreturn, gnu::cold]] void refuse_count(std::size_t given, std::string_view what,
                                            std::size_t wanted) const;

  const client& client_;
  abi::loaded* it_;
  std::vector<parameter> parameters_;
  std::vector<array_type> results_;
  int devices_ = 1;
  bool partitioned_ = false;
};

namespace detail {

/// The plugin's description of a program, owned while it is queried.
struct program_code {
  const plugin& from;
  abi::executable* it = nullptr;
  program_code(const plugin& p, const abi::loaded* of) : from(p) {
    abi::padded<abi::made_of<abi::loaded, abi::executable>> a;
    a->of = of;
    p.call(abi::entry::loaded_executable, a, "pjrt::executable");
    it = a->made;
  }
  program_code(const program_code&) = delete;
  ~program_code() { from.destroy(abi::entry::executable_destroy, it); }
};

inline std::string serialize(const plugin& p, const abi::executable* of) {
  abi::padded<abi::serialize> a;
  a->of = of;
  p.call(abi::entry::executable_serialize, a, "pjrt: saving a program");
  std::string bytes(a->bytes, a->size);
  a->destroy(a->holds);
  return bytes;
}

}  // namespace detail

[[gnu::cold]] inline executable::executable(const client& c, abi::loaded* it, std::string_view text)
    : client_(c), it_(it) {
  try {
    parameters_ = parameters_of(text);
    read_devices();
    read_results();
  } catch (...) {
    release();
    throw;
  }
}

[[gnu::cold]] inline void executable::read_devices() {
  const detail::program_code code(client_.loaded_plugin(), it_);
  abi::padded<abi::number_of<abi::executable, std::size_t>> a;
  a->of = code.it;
  client_.loaded_plugin().call(abi::entry::executable_partitions, a, "pjrt::executable");
  partitioned_ = a->number > 1;
  devices_ = static_cast<int>(a->number);
  client_.loaded_plugin().call(abi::entry::executable_replicas, a, "pjrt::executable");
  devices_ *= static_cast<int>(a->number);
}

[[gnu::cold]] inline void executable::read_results() {
  const plugin& p = client_.loaded_plugin();
  const detail::program_code code(p, it_);
  abi::padded<abi::output_types> types;
  types->of = code.it;
  p.call(abi::entry::executable_output_types, types, "pjrt::executable");
  abi::padded<abi::output_sizes> sizes;
  sizes->of = code.it;
  p.call(abi::entry::executable_output_sizes, sizes, "pjrt::executable");
  const std::int64_t* size = sizes->sizes;
  for (std::size_t i = 0; i < types->count; ++i) {
    array_type& t = results_.emplace_back();
    t.type = types->types[i];
    check_element(t.type, "pjrt: result " + std::to_string(i) + " of the program");
    if (sizes->ranks[i] > xla::detail::max_rank)
      throw runtime_error("pjrt: result " + std::to_string(i) + " of the program has " +
                          std::to_string(sizes->ranks[i]) + " axes");
    for (std::size_t k = 0; k < sizes->ranks[i]; ++k) t.sizes.push(*size++);
  }
}

[[gnu::cold]] inline program_memory executable::memory() const {
  client_.check();
  const detail::program_code code(client_.loaded_plugin(), it_);
  abi::padded<abi::memory_of> a;
  a->of = code.it;
  client_.loaded_plugin().call(abi::entry::executable_memory, a, "pjrt::executable::memory");
  return {a->code, a->arguments, a->results, a->aliased, a->temporaries};
}

[[gnu::cold]] inline std::string executable::serialize() const {
  client_.check();
  return detail::serialize(client_.loaded_plugin(),
                           detail::program_code(client_.loaded_plugin(), it_).it);
}

inline void executable::execute_all(abi::buffer* const* const* arguments,
                                    abi::buffer** const* results,
                                    std::span<const std::int64_t> non_donatable,
                                    abi::event** in_flight) const {
  client_.check();
  const plugin& p = client_.loaded_plugin();
  abi::event* one = nullptr;
  std::vector<abi::event*> several(devices_ > 1 ? static_cast<std::size_t>(devices_) : 0);
  abi::event** const done = in_flight ? in_flight : devices_ > 1 ? several.data() : &one;
  abi::padded<abi::execute_options> options;
  options->non_donatable = non_donatable.data();
  options->non_donatable_count = non_donatable.size();
  abi::padded<abi::execute> a;
  a->program = it_;
  a->options = &options.given;
  a->arguments = arguments;
  a->devices = static_cast<std::size_t>(devices_);
  a->argument_count = parameters_.size();
  a->results = results;
  a->done = done;
  p.call(abi::entry::loaded_execute, a, "pjrt: running a program");
  if (in_flight) return;
  std::exception_ptr failed;
  for (int d = 0; d < devices_; ++d) try {
      p.await(done[d], "pjrt: running a program");
    } catch (...) {
      failed = std::current_exception();
    }
  if (!failed) return;
  for (int d = 0; d < devices_; ++d)
    for (std::size_t i = 0; i < results_.size(); ++i)
      client_.drop(std::exchange(results[d][i], nullptr));
  std::rethrow_exception(failed);
}

inline void executable::refuse_count(std::size_t given, std::string_view what,
                                     std::size_t wanted) const {
  throw runtime_error(
      xla::detail::join({"pjrt::executable::run: ", std::to_string(given), " ", what,
                         "; the program was built for ", std::to_string(wanted)}));
}

inline void executable::check(std::span<buffer* const> arguments, int device) const {
  if (arguments.size() != parameters_.size())
    refuse_count(arguments.size(), "arguments", parameters_.size());
  const auto refuse = [](std::size_t i, const std::string& what) {
    throw runtime_error(
        xla::detail::join({"pjrt::executable::run: argument ", std::to_string(i), what}));
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i]) refuse(i, " is a null pointer");
    const buffer& b = *arguments[i];
    b.get();
    const array_type& wanted = parameters_[i].type;
    if (b.on() != &client_) refuse(i, " is of another client");
    if (b.device() != device)
      refuse(i, " is on device " + std::to_string(b.device()) + ", and the program runs on " +
                    std::to_string(device));
    // Each of several partitions has a part of the array that the text names.
    if (partitioned_ ? b.type().type != wanted.type : b.type() != wanted)
      refuse(i, " is " + describe(b.type()) + "; the program was built for " + describe(wanted));
  }
}

inline std::vector<std::vector<buffer>> executable::run_all(
    std::span<const std::vector<buffer*>> arguments) const {
  if (arguments.size() != static_cast<std::size_t>(devices_))
    refuse_count(arguments.size(), "lists of arguments, one for each device",
                 static_cast<std::size_t>(devices_));
  std::vector<std::vector<abi::buffer*>> in(arguments.size()), out(arguments.size());
  std::vector<abi::buffer* const*> ins;
  std::vector<abi::buffer**> outs;
  for (std::size_t d = 0; d < arguments.size(); ++d) {
    check(arguments[d], static_cast<int>(d));
    for (const buffer* b : arguments[d]) in[d].push_back(b->get());
    out[d].resize(results_.size());
    ins.push_back(in[d].data());
    outs.push_back(out[d].data());
  }
  execute_all(ins.data(), outs.data());
  std::vector<std::vector<buffer>> results(arguments.size());
  for (std::size_t d = 0; d < arguments.size(); ++d) {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].donated) arguments[d][i]->donate();
    for (std::size_t i = 0; i < results_.size(); ++i)
      results[d].emplace_back(client_, out[d][i], results_[i], static_cast<int>(d));
  }
  return results;
}

inline std::vector<buffer> executable::run(std::span<buffer* const> arguments) const {
  const std::vector<buffer*> of_one(arguments.begin(), arguments.end());
  return std::move(run_all({&of_one, 1})[0]);
}

}  // namespace xla::ext::pjrt
