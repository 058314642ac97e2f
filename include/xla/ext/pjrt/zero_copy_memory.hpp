// SPDX-License-Identifier: Apache-2.0
#pragma once

// A call's memory where the plugin reads the host's: arguments and results stay in place and
// nothing is copied. Devices with memory of their own use transferred_memory.hpp.

#include <cstring>
#include <memory>
#include <utility>

#include "xla/ext/pjrt/call_memory.hpp"
#include "xla/ext/pjrt/device_memory.hpp"

namespace xla::detail {

/// For a plugin that reads the host's memory: nothing is copied. A run reads arguments in place,
/// and writes each result into the memory that an argument lends it, where the caller wants it. The
/// plugin's handles contain only an address. They are used again whenever the address comes again,
/// both for arguments and for results in donated memory, because making one costs as much as
/// passing it.
class zero_copy_memory final : public call_memory {
 public:
  zero_copy_memory(const ext::pjrt::client& on, const pjrt_text& of, int device)
      : call_memory(on, of, device),
        argument_views_(of.arguments.size()),
        words_(std::make_unique<number[]>(count_numbers(of))) {
    number* next = words_.get();
    for (int i = 0; i < argument_views_.size(); ++i)
      if (is_number(of.written.arguments[i])) argument_views_[i].words = next++;
  }
  ~zero_copy_memory() override {
    for (const argument_view& a : argument_views_)
      for (const view& p : a.known) on_.drop(p.it);
  }

  /// If a write has memory of its own, the old value is copied there first.
  void prepare(const run_arguments& with) override {
    for (int i = 0; i < in_.size(); ++i) in_[i] = lend(i, find(i, with));
  }
  void keep(const run_arguments& with) override {
    for (int i = 0; i < in_.size(); ++i)
      if (const int o = of_.written.arguments[i].output; o >= 0)
        keep(argument_views_[i], o, with.outputs[o]->memory);
  }

 private:
  using role = stablehlo_argument::role;
  using host_memory = ext::pjrt::host_memory;
  static constexpr int ways = 4;  // this many tensors may take turns as one argument

  struct alignas(64) number {
    argument_words elements;
  };
  struct view {
    handle it = nullptr;
    const void* at = nullptr;  // nullptr if XLA has copied because of alignment
    bool gives = false;        // the result is where this argument is
  };
  struct argument_view {
    view known[ways];
    int used = 0, next = 0;
    number* words = nullptr;
  };

  static bool is_number(const stablehlo_argument& a) {
    return a.is == role::number || a.is == role::draw;
  }
  static std::size_t count_numbers(const pjrt_text& of) {
    std::size_t n = 0;
    for (const stablehlo_argument& a : of.written.arguments) n += is_number(a);
    return n;
  }

  /// The address of an argument's memory.
  const void* find(int i, const run_arguments& with) {
    const stablehlo_argument& a = of_.written.arguments[i];
    switch (a.is) {
      case role::value: return find(i, *with.slots[a.number].value, with);
      case role::gradient: return find(i, *with.slots[a.number].gradient, with);
      case role::room: return with.outputs[a.number]->memory;
      default:
        argument_views_[i].words->elements = argument_words(a, with);
        return argument_views_[i].words;
    }
  }
  const void* find(int i, buffer& from, const run_arguments& with) const {
    const void* const at = ext::pjrt::host_copy_of(from, of_.arguments[i].bytes());
    const int output = of_.written.arguments[i].output;
    if (output < 0) return at;
    void* const to = with.outputs[output]->memory;
    return to == at ? to : std::memcpy(to, at, of_.arguments[i].bytes());
  }

  handle lend(int i, const void* at) {
    argument_view& a = argument_views_[i];
    for (a.used = 0; a.used < ways; ++a.used)
      if (const view& p = a.known[a.used]; p.at == at && p.it) return p.it;
    a.used = a.next;
    a.next = (a.next + 1) % ways;
    view& p = a.known[a.used];
    on_.drop(p.it);
    p = {};
    const bool written = of_.written.arguments[i].output >= 0;
    p.it = on_.put(at, of_.arguments[i],
                   written ? host_memory::written_in_place : host_memory::read_in_place, device_);
    if (on_.address(p.it) == at) p.at = at;
    return p.it;
  }
  /// The result's handle replaces the donated one.
  void keep(argument_view& a, int result, void* to) {
    view& p = a.known[a.used];
    on_.drop(p.it);
    p.it = std::exchange(out_[result], nullptr);
    if (p.gives) return;
    const void* const there = on_.address(p.it);
    p.gives = there == to && p.at;
    if (p.gives) return;
    if (there != to) std::memcpy(to, there, of_.results[result].bytes());
    on_.drop(p.it);
    p = {};
  }

  list<argument_view> argument_views_;
  std::unique_ptr<number[]> words_;
};

}  // namespace xla::detail
