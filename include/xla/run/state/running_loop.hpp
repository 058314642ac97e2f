// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loop whose steps this thread runs one by one, so that backward() inside a step stops at its
// start. step_tape.hpp sets it.

#include <utility>

#include "xla/run/state/context.hpp"

namespace xla::detail {

/// A loop whose steps this thread runs one after the other, while it lives: what has made the
/// tensors that it gives to the step, before the first one and behind the one before.
struct running_loop {
  const impl* before = nullptr;
  const impl* latest = nullptr;
  running_loop* outer;

  running_loop() : outer(std::exchange(this_thread.loop, this)) {}
  ~running_loop() { this_thread.loop = outer; }
  running_loop(const running_loop&) = delete;
};

}  // namespace xla::detail
