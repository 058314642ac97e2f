// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cores on which a thread may run. Where the system offers no choice, a set of cores is empty
// and pinning to it does nothing.

#include "xla/base/system/platform.hpp"

#if XLA_LINUX
#include <sched.h>
#endif

namespace xla::sys {

#if XLA_LINUX
/// The core on which this thread runs.
inline int current_core() noexcept { return ::sched_getcpu(); }

/// A set of cores, which can be sent between processes as bytes.
class core_set {
 public:
  /// Those on which this thread may run.
  [[gnu::cold]] static core_set of_this_thread() noexcept {
    core_set own;
    ::sched_getaffinity(0, sizeof own.bits_, &own.bits_);
    return own;
  }
  [[gnu::cold]] int count() const noexcept { return CPU_COUNT(&bits_); }
  /// The i-th of n equal parts, neighbours together.
  [[gnu::cold]] core_set part(int i, int n) const noexcept {
    const int cores = count(), first = i * cores / n, end = (i + 1) * cores / n;
    core_set own;
    for (int cpu = 0, k = 0; cpu < CPU_SETSIZE && k < end; ++cpu) {
      if (!CPU_ISSET(cpu, &bits_)) continue;
      if (k++ >= first) CPU_SET(cpu, &own.bits_);
    }
    return own;
  }
  /// Lets this thread run on these alone. If the system refuses, the thread goes on where it may.
  [[gnu::cold]] void pin_this_thread() const noexcept {
    ::sched_setaffinity(0, sizeof bits_, &bits_);
  }
  /// Moves this thread, which runs on these, to another core than the given one if there is one.
  /// Afterwards it may run on all of them.
  [[gnu::cold]] void leave(int core) const noexcept {
    core_set others = *this;
    CPU_CLR(core, &others.bits_);
    if (others.count() == 0) return;
    others.pin_this_thread();
    pin_this_thread();
  }
  [[gnu::cold]] bool operator==(const core_set& other) const noexcept {
    return CPU_EQUAL(&bits_, &other.bits_) != 0;
  }

 private:
  cpu_set_t bits_{};
};
#else
inline int current_core() noexcept { return -1; }

class core_set {
 public:
  static core_set of_this_thread() noexcept { return {}; }
  int count() const noexcept { return 0; }
  core_set part(int, int) const noexcept { return {}; }
  void pin_this_thread() const noexcept {}
  void leave(int) const noexcept {}
  bool operator==(const core_set&) const noexcept = default;
};
#endif

}  // namespace xla::sys
