// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a program on one device or a mesh. backend.hpp makes one for each signature of a program
// without exchanges.

#include <utility>

#include "xla/ext/pjrt/call_memory.hpp"
#include "xla/ext/pjrt/compiled.hpp"

namespace xla::detail {

/// Runs a program by a plugin, on one device or on those of a mesh. A call that fails leaves
/// everything as it was: what can fail but for want of memory are checks, which come first.
class pjrt_program final : public pjrt_compiled {
 public:
  pjrt_program(const backend& by, const ext::pjrt::client& on, sized_program&& p, int partitions)
      : pjrt_compiled(by, on, std::move(p), 1, partitions) {}

  void run(const run_arguments& with) override {
    checks_.run(with, true);
    if (!code_) return;
    call(memories_, 0, [&](call_memory& m) {
      m.bring(with);
      code_->execute_all(m.in(), m.out(), m.keeps(), m.under_way());
      m.keep(with);
    });
  }

 private:
  call_memories memories_;
};

}  // namespace xla::detail
