// SPDX-License-Identifier: Apache-2.0
#pragma once

// A call's memory where tensors are copied to devices: to those with memory of their own, such as
// GPUs, or to several that share a tensor. Results stay there for the next call. A plugin on the
// host uses zero_copy_memory.hpp.

#include <memory>
#include <utility>

#include "xla/ext/pjrt/call_memory.hpp"
#include "xla/ext/pjrt/device_memory.hpp"

namespace xla::detail {

/// For devices whose memory the host cannot read, and for several devices that share a tensor. A
/// run's results stay there, and are donated to the next run that replaces them unless someone else
/// holds them. The host's tensors are sent once, numbers when they change. A run is awaited before
/// the next but one begins, or when its results are read.
class transferred_memory final : public call_memory {
 public:
  transferred_memory(const ext::pjrt::client& on, const memory_space& there, const pjrt_text& of,
                     int first_device)
      : call_memory(on, of, first_device), there_(there), numbers_(of.arguments.size()) {
    for (auto& events : in_flight_) events.assign(of.written.partitions, nullptr);
  }
  ~transferred_memory() override {
    for (const auto& events : in_flight_)
      for (event* const e : events)
        on_.loaded_plugin().destroy(ext::pjrt::abi::entry::event_destroy, e);
  }

  void prepare(const run_arguments& with) override {
    turn_ ^= 1;
    for (event*& e : in_flight_[turn_])
      if (e)
        on_.loaded_plugin().await(std::exchange(e, nullptr), "pjrt: a program that was under way");
    non_donatable_.clear();
    passed_.clear();
    made_.clear();
    for (int o = 0; o < of_.results.size(); ++o)
      made_.push_back(
          std::make_unique<array>(on_, of_.results[o], placement_of(of_.written.shardings[o])));
    const int arguments = of_.arguments.size();
    for (int i = 0; i < arguments; ++i) {
      const array& a = find(i, with);
      for (int d = 0; d < a.parts.size(); ++d) in_[d * arguments + i] = a.parts[d];
    }
  }
  ext::pjrt::abi::event** in_flight() override { return in_flight_[turn_].data(); }
  void keep(const run_arguments& with) override {
    const int results = of_.results.size();
    for (int o = 0; o < results; ++o) {
      for (int d = 0; d < of_.written.partitions; ++d)
        made_[o]->parts.push_back(std::exchange(out_[d * results + o], nullptr));
      with.outputs[o]->replace(made_[o].release());
    }
    passed_.clear();
  }

 private:
  using role = stablehlo_argument::role;
  using array = ext::pjrt::device_array;
  using array_placement = ext::pjrt::array_placement;
  using event = ext::pjrt::abi::event;
  struct number {
    argument_words elements;
    std::unique_ptr<const array> sent;
  };

  array_placement placement_of(const sharding& s) const { return {device_, s}; }

  const array& find(int i, const run_arguments& with) {
    const stablehlo_argument& a = of_.written.arguments[i];
    if (a.is != role::value && a.is != role::gradient) return find_number(i, with);
    const slot_value& slot = with.slots[a.number];
    buffer& from = a.is == role::value ? *slot.value : *slot.gradient;
    const array_placement placement = placement_of(a.sharded_as);
    if (from.space == &there_ && array::of(from).placement == placement) {
      // If someone else holds the old value, the new one gets another buffer.
      if (a.output >= 0 && with.outputs[a.output] != &from) non_donatable_.push_back(i);
      return array::of(from);
    }
    if (a.output >= 0) return *passed_.emplace_back(send(from, of_.arguments[i], placement));
    using ext::pjrt::detail::device_copy;
    if (const array* const known = device_copy::find(from, on_, of_.arguments[i], placement))
      return *known;
    auto made = send(from, of_.arguments[i], placement);
    const array& sent = *made;
    from.keep(*new device_copy(std::move(made)));
    return sent;
  }
  /// Between devices without the host, where one has all of it and another needs it.
  std::unique_ptr<array> send(buffer& from, const ext::pjrt::array_type& type,
                              const array_placement& placement) const {
    const auto is_one = [](const array_placement& p) { return p.sharded_as.devices() == 1; };
    if (from.space != &there_ || !is_one(placement) || !is_one(array::of(from).placement))
      return std::make_unique<array>(on_, type, placement,
                                     ext::pjrt::host_copy_of(from, type.bytes()));
    auto made = std::make_unique<array>(on_, type, placement);
    made->parts.push_back(on_.copy_to(array::of(from).parts[0], placement.device));
    return made;
  }
  const array& find_number(int i, const run_arguments& with) {
    number& n = numbers_[i];
    const argument_words now(of_.written.arguments[i], with);
    if (n.sent && n.elements == now) return *n.sent;
    n.sent = std::make_unique<const array>(
        on_, of_.arguments[i], placement_of(of_.written.arguments[i].sharded_as), now.words);
    n.elements = now;
    return *n.sent;
  }

  const memory_space& there_;
  list<number> numbers_;  // per argument
  list<std::unique_ptr<array>> made_, passed_;
  list<event*> in_flight_[2];  // of the last call, and of the one before it
  int turn_ = 0;
};

}  // namespace xla::detail
