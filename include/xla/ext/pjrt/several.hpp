// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "xla/ext/pjrt/call_memory.hpp"
#include "xla/ext/pjrt/checks.hpp"
#include "xla/ext/pjrt/compile.hpp"

namespace xla::detail {

/// A program that runs on several devices of a plugin at once: replicas, or parts of one.
class pjrt_on_several : public executable {
 public:
  const sized_program& about() const override { return p_; }
  bool check(const run_arguments& with) override { return checks_.run(with, false); }
  MemoryAnalysis memory() const override { return pjrt_memory(p_, executable_.get()); }

 protected:
  using device_buffer = ext::pjrt::abi::buffer;
  using host_memory = ext::pjrt::host_memory;
  using role = stablehlo_argument::role;

  pjrt_on_several(const engine& by, const ext::pjrt::client& on, sized_program&& p, bool in_place,
                  int replicas)
      : executable(&by), on_(on), p_(std::move(p)), checks_(by, p_), text_(p_, in_place) {
    if (!text_.results.empty())
      executable_ = on.compile(text_.written.text,
                               {.replicas = replicas, .partitions = text_.written.partitions});
  }

  /// Where the host has the elements of an argument; words has those of none.
  static const void* home_of(const stablehlo_argument& a, const run_arguments& with,
                             const argument_words& words) {
    if (a.is == role::value) return with.slots[a.number].value->home;
    if (a.is == role::gradient) return with.slots[a.number].gradient->home;
    return words.words;
  }

  const ext::pjrt::client& on_;
  sized_program p_;
  pjrt_checks checks_;
  pjrt_text text_;
  std::shared_ptr<const ext::pjrt::executable> executable_;
};

}  // namespace xla::detail
