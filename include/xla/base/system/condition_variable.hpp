// SPDX-License-Identifier: Apache-2.0
#pragma once

// Condition variables for sys::mutex. Without threads nobody can change what is waited for: a wait
// whose condition does not hold throws.

#include "xla/base/system/mutex.hpp"
#include "xla/base/system/platform.hpp"
#include "xla/base/system/windows.hpp"

#if XLA_THREADS
#include <chrono>
#include <condition_variable>
#else
#include "xla/base/error.hpp"
#endif

namespace xla::sys {

#if XLA_THREADS && XLA_WINDOWS
/// The part of std::condition_variable that the library calls, by Windows' own type.
class condition_variable {
 public:
  constexpr condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  void notify_one() noexcept { WakeConditionVariable(native()); }
  void notify_all() noexcept { WakeAllConditionVariable(native()); }
  template <class Holds>
  void wait(unique_lock<mutex>& lock, Holds holds) {
    while (!holds()) sleep(lock, 0xffffffff);
  }
  template <class Duration, class Holds>
  bool wait_for(unique_lock<mutex>& lock, const Duration& most, Holds holds) {
    const auto end = std::chrono::steady_clock::now() + most;
    return wait_until(lock, end, holds);
  }
  template <class Time, class Holds>
  bool wait_until(unique_lock<mutex>& lock, const Time& end, Holds holds) {
    while (!holds()) {
      const auto left = end - Time::clock::now();
      if (left <= left.zero()) return false;
      using std::chrono::milliseconds;
      const auto most = std::chrono::duration_cast<milliseconds>(left) + milliseconds(1);
      sleep(lock, most.count() < 1000 ? static_cast<unsigned long>(most.count()) : 1000);
    }
    return true;
  }

 private:
  struct _RTL_CONDITION_VARIABLE* native() noexcept {
    return reinterpret_cast<struct _RTL_CONDITION_VARIABLE*>(&word_);
  }
  void sleep(unique_lock<mutex>& lock, unsigned long milliseconds) noexcept {
    SleepConditionVariableSRW(native(), lock.mutex()->native(), milliseconds, 0);
  }

  void* word_ = nullptr;
};
#elif XLA_THREADS
using std::condition_variable;
#else
class condition_variable {
 public:
  void notify_one() noexcept {}
  void notify_all() noexcept {}
  template <class Lock, class Holds>
  void wait(Lock&, Holds holds) {
    if (!holds()) throw runtime_error("xla: a wait for another thread, in a program without any");
  }
  template <class Lock, class Time, class Holds>
  bool wait_for(Lock&, const Time&, Holds holds) {
    return holds();
  }
  template <class Lock, class Time, class Holds>
  bool wait_until(Lock&, const Time&, Holds holds) {
    return holds();
  }
};
#endif

}  // namespace xla::sys
