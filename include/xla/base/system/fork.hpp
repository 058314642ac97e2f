// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions that fork() calls, where a process can fork. base/fork.hpp orders what they do.

#include "xla/base/system/platform.hpp"

#if XLA_POSIX
#include <pthread.h>
#endif

namespace xla::sys {

using fork_handler = void();

/// Has fork() call one function before it, and one after it in each of the two processes. Any of
/// them may be nullptr. Returns true, so that it can initialise a static object.
inline bool at_fork([[maybe_unused]] fork_handler* before, [[maybe_unused]] fork_handler* in_parent,
                    [[maybe_unused]] fork_handler* in_child) noexcept {
#if XLA_POSIX
  ::pthread_atfork(before, in_parent, in_child);
#endif
  return true;
}

}  // namespace xla::sys
