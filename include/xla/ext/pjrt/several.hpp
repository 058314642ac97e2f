// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "xla/ext/pjrt/arguments.hpp"
#include "xla/ext/pjrt/compile.hpp"
#include "xla/ext/pjrt/checks.hpp"
#include "xla/run/engine/common.hpp"

namespace xla::detail {

/// A program that runs on several devices of a plugin at once: replicas, or parts of one.
class pjrt_on_several : public executable {
 public:
  const sized_program& about() const override { return p_; }
  bool check(const run_arguments& with) override { return checks_.run(with, false); }
  MemoryAnalysis memory() const override {
    MemoryAnalysis m = memory_outside(p_);
    if (!executable_) return m;
    const ext::pjrt::program_memory there = executable_->memory();
    m.aliased = there.aliased;
    m.arena = there.temporaries;
    return m;
  }

 protected:
  using device_buffer = ext::pjrt::abi::buffer;
  using host_memory = ext::pjrt::host_memory;
  using role = stablehlo_argument::role;

  pjrt_on_several(const engine& by, const ext::pjrt::client& on, sized_program&& p, bool in_place)
      : executable(&by),
        on_(on),
        p_(std::move(p)),
        checks_(by, p_),
        written_(write_stablehlo(p_, in_place)) {
    for (const stablehlo_argument& a : written_.arguments)
      arguments_.push_back(pjrt_type_of(a.type));
    for (int i = 0; i < p_.source.count.writes + p_.source.count.results; ++i) {
      const int v = output_of(p_.source, i);
      results_.push_back({ext::pjrt::element_of(p_.source.values[v].type), p_.shapes[v]});
    }
    if (!results_.empty())
      executable_ = on.compile(written_.text,
                               {.replicas = written_.replicas, .partitions = written_.partitions});
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
  stablehlo_program written_;
  list<ext::pjrt::array_type> arguments_, results_;
  std::shared_ptr<const ext::pjrt::executable> executable_;
};

}  // namespace xla::detail
