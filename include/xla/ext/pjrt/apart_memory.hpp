// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "xla/ext/pjrt/call_memory.hpp"
#include "xla/ext/pjrt/device_memory.hpp"

namespace xla::detail {

/// Runs a program on a device whose memory the host does not read. What a run makes stays there,
/// and is donated to the next one that replaces it, unless somebody else holds it; the host's
/// tensors are sent once, and numbers when they change.
class apart_memory final : public call_memory {
 public:
  apart_memory(const ext::pjrt::client& on, const memory_place& there, const pjrt_text& of)
      : on_(on),
        there_(there),
        of_(of),
        in_(of.arguments.size()),
        out_(of.results.size()),
        sent_(of.arguments.size()) {}
  ~apart_memory() override {
    for (const sent& s : sent_) on_.drop(s.it);
  }

  void run(const ext::pjrt::executable& by, const run_arguments& with) override {
    keeps_.clear();
    list<std::unique_ptr<ext::pjrt::device_array>> made, passed;
    for (const ext::pjrt::array_type& t : of_.results)
      made.push_back(std::make_unique<ext::pjrt::device_array>(on_, t));
    for (int i = 0; i < in_.size(); ++i) in_[i] = bring(i, with, passed);
    by.execute(in_.data(), out_.data(), {keeps_.data(), static_cast<std::size_t>(keeps_.size())});
    for (int o = 0; o < out_.size(); ++o) {
      made[o]->it = out_[o];
      with.outputs[o]->replace(made[o].release());
    }
  }

 private:
  using role = stablehlo_argument::role;
  using handle = ext::pjrt::abi::buffer*;
  struct sent {
    argument_words elements;
    handle it = nullptr;
  };

  handle bring(int i, const run_arguments& with,
               list<std::unique_ptr<ext::pjrt::device_array>>& passed) {
    const stablehlo_argument& a = of_.written.arguments[i];
    if (a.is != role::value && a.is != role::gradient) return bring_number(i, with);
    const slot_value& slot = with.slots[a.number];
    buffer& from = a.is == role::value ? *slot.value : *slot.gradient;
    if (from.place == &there_) {
      // Somebody else holds what has another buffer for its new value.
      if (a.output >= 0 && with.outputs[a.output] != &from) keeps_.push_back(i);
      return ext::pjrt::device_array::of(from).it;
    }
    if (a.output < 0) return copy_of(from, of_.arguments[i]);
    handle const there = on_.put(from.home, of_.arguments[i]);
    return passed.emplace_back(new ext::pjrt::device_array(on_, of_.arguments[i], there))->it;
  }
  handle copy_of(buffer& from, const ext::pjrt::array_type& type) const {
    using ext::pjrt::detail::device_copy;
    if (const device_copy* const known = device_copy::find(from, there_, type)) return known->get();
    auto made = std::make_unique<device_copy>(there_, on_, type, from.home.load());
    handle const there = made->get();
    from.keep(*made.release());
    return there;
  }
  handle bring_number(int i, const run_arguments& with) {
    sent& s = sent_[i];
    const argument_words now(of_.written.arguments[i], with);
    if (s.it && s.elements == now) return s.it;
    on_.drop(std::exchange(s.it, nullptr));
    s.it = on_.put(now.words, of_.arguments[i]);
    s.elements = now;
    return s.it;
  }

  const ext::pjrt::client& on_;
  const memory_place& there_;
  const pjrt_text& of_;
  list<handle> in_, out_;
  list<sent> sent_;
  list<std::int64_t> keeps_;
};

}  // namespace xla::detail
