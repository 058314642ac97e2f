// SPDX-License-Identifier: Apache-2.0
#pragma once

// The executables of the PJRT backend: a compiled program with its checks and its calls, and the
// one that runs on one device or a mesh. replicas.hpp derives the one for exchanges.

#include <memory>
#include <utility>

#include "xla/ext/pjrt/call_memory.hpp"
#include "xla/ext/pjrt/checks.hpp"
#include "xla/ext/pjrt/compile.hpp"
#include "xla/ext/pjrt/transferred_memory.hpp"
#include "xla/ext/pjrt/zero_copy_memory.hpp"
#include "xla/run/backend/common.hpp"
#include "xla/run/execute/executable.hpp"

namespace xla::detail {

/// A program that a plugin has compiled, for one caller or for all replicas.
class pjrt_compiled : public executable {
 public:
  const sized_program& about() const override { return p_; }
  bool check(const run_arguments& with) override { return checks_.run(with, false); }
  MemoryAnalysis memory() const override {
    MemoryAnalysis m = memory_outside(p_);
    if (!code_) return m;
    const ext::pjrt::program_memory there = code_->memory();
    m.aliased = there.aliased;
    m.arena = there.temporaries;
    return m;
  }

 protected:
  pjrt_compiled(const backend& by, const ext::pjrt::client& on, sized_program&& p, int replicas,
                int partitions)
      : executable(&by, on.on_host() && partitions == 1 ? nullptr : &ext::pjrt::memory_of(on)),
        on_(on),
        p_(std::move(p)),
        checks_(by, p_),
        text_(p_, {.rooms = !space(), .for_processor = on.platform() == "cpu"}) {
    if (!text_.results.empty())
      code_ = on.compile(text_.written.text,
                         {.replicas = replicas, .partitions = text_.written.partitions});
    for (const stablehlo_argument& a : text_.written.arguments)
      if (a.is != stablehlo_argument::role::room && a.output >= 0) p_.in_place[a.output] = true;
  }
  /// A call on a device, or on a mesh that begins with it.
  template <class Use>
  void call(call_memories& memories, int device, Use use) const {
    on_.check();  // first, because in a forked process nobody may release a lock
    const auto make = [&]() -> std::unique_ptr<call_memory> {
      if (space()) return std::make_unique<transferred_memory>(on_, *space(), text_, device);
      return std::make_unique<zero_copy_memory>(on_, text_, device);
    };
    memories.run(make, use);
  }

  const ext::pjrt::client& on_;
  sized_program p_;
  const pjrt_checks checks_;
  const pjrt_text text_;
  std::shared_ptr<const ext::pjrt::executable> code_;  // nullptr: nothing is left to compute
};

/// Runs a program by a plugin, on one device or on those of a mesh. A failed call changes nothing:
/// apart from a lack of memory only checks can fail, and they come first.
class pjrt_program final : public pjrt_compiled {
 public:
  pjrt_program(const backend& by, const ext::pjrt::client& on, sized_program&& p, int partitions)
      : pjrt_compiled(by, on, std::move(p), 1, partitions) {}

  void run(const run_arguments& with) override {
    checks_.run(with, true);
    if (!code_) return;
    call(memories_, 0, [&](call_memory& m) {
      m.prepare(with);
      code_->execute_all(m.in(), m.out(), m.non_donatable(), m.in_flight());
      m.keep(with);
    });
  }

 private:
  call_memories memories_;
};

}  // namespace xla::detail
