// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads, and how they wait for each other without a mutex. Without threads to start one throws;
// callers that can do without ask sys::has_threads.

#include <atomic>

#include "xla/base/system/mutex.hpp"
#include "xla/base/system/platform.hpp"

#if XLA_THREADS
#include <thread>
#else
#include "xla/base/error.hpp"
#endif

namespace xla::sys {

#if XLA_THREADS
using std::thread;
using thread_id = std::thread::id;

inline thread_id this_thread_id() noexcept { return std::this_thread::get_id(); }
inline unsigned cpu_count() noexcept { return std::thread::hardware_concurrency(); }
/// Lets another thread run.
inline void yield() noexcept { std::this_thread::yield(); }
template <class Duration>
void sleep_for(const Duration& time) {
  std::this_thread::sleep_for(time);
}

/// Waits while an atomic has a value; may return early.
template <class T>
void wait_while(const std::atomic<T>& a, T value) noexcept {
  a.wait(value);
}
template <class T>
void wake_one(std::atomic<T>& a) noexcept {
  a.notify_one();
}
template <class T>
void wake_all(std::atomic<T>& a) noexcept {
  a.notify_all();
}
#else
/// A number that no default thread_id has.
struct thread_id {
  int number = 0;
  bool operator==(const thread_id&) const = default;
  auto operator<=>(const thread_id&) const = default;
};

class thread {
 public:
  thread() noexcept = default;
  template <class F, class... Arguments>
  explicit thread(F&&, Arguments&&...) {
    throw runtime_error(
        "xla: this needs a thread of its own, and the program is built without threads "
        "(XLA_NO_THREADS, or a system that has none)");
  }
  bool joinable() const noexcept { return false; }
  void join() noexcept {}
};

inline thread_id this_thread_id() noexcept { return {1}; }
inline unsigned cpu_count() noexcept { return 1; }
inline void yield() noexcept {}
template <class Duration>
void sleep_for(const Duration&) noexcept {}
template <class T>
void wait_while(const std::atomic<T>&, T) noexcept {}
template <class T>
void wake_one(std::atomic<T>&) noexcept {}
template <class T>
void wake_all(std::atomic<T>&) noexcept {}
#endif

}  // namespace xla::sys
