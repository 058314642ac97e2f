// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "xla/ext/pjrt/apart_memory.hpp"
#include "xla/ext/pjrt/call_memory.hpp"
#include "xla/ext/pjrt/checks.hpp"
#include "xla/ext/pjrt/compile.hpp"
#include "xla/ext/pjrt/lent_memory.hpp"
#include "xla/run/execute/executable.hpp"

namespace xla::detail {

/// Runs a program by a plugin. A call that fails leaves everything as it was: what can fail but for
/// want of memory are checks, which come first.
class pjrt_program final : public executable {
 public:
  pjrt_program(const engine& by, const ext::pjrt::client& on, sized_program&& p)
      : executable(&by, on.on_host() ? nullptr : &ext::pjrt::memory_of(on)),
        on_(on),
        p_(std::move(p)),
        checks_(by, p_),
        text_(p_, !place()) {
    if (!text_.results.empty()) code_ = on.compile(text_.written.text);
    for (const stablehlo_argument& a : text_.written.arguments)
      if (a.is != stablehlo_argument::role::room && a.output >= 0) p_.in_place[a.output] = true;
  }
  const sized_program& about() const override { return p_; }
  void run(const run_arguments& with) override {
    checks_.run(with, true);
    if (!code_) return;
    on_.check();  // first, as in a forked process nobody may let go of a lock
    memories_.run(*code_, with, [this]() -> std::unique_ptr<call_memory> {
      if (place()) return std::make_unique<apart_memory>(on_, *place(), text_);
      return std::make_unique<lent_memory>(on_, text_);
    });
  }
  bool check(const run_arguments& with) override { return checks_.run(with, false); }
  MemoryAnalysis memory() const override { return pjrt_memory(p_, code_.get()); }

 private:
  const ext::pjrt::client& on_;
  sized_program p_;
  const pjrt_checks checks_;
  const pjrt_text text_;
  std::shared_ptr<const ext::pjrt::executable> code_;
  call_memories memories_;
};

}  // namespace xla::detail
