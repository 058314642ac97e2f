// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mutexes. std::lock_guard works on them everywhere. Without threads they only look like mutexes.

#include <mutex>

#include "xla/base/system/platform.hpp"
#include "xla/base/system/windows.hpp"

namespace xla::sys {

/// Whether a program can start threads.
inline constexpr bool has_threads = XLA_THREADS;

#if XLA_THREADS && XLA_WINDOWS
/// The system's lock of one word. std::mutex of MinGW is no constant that static storage may have.
class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() noexcept { AcquireSRWLockExclusive(native()); }
  bool try_lock() noexcept { return TryAcquireSRWLockExclusive(native()) != 0; }
  void unlock() noexcept { ReleaseSRWLockExclusive(native()); }
  struct _RTL_SRWLOCK* native() noexcept { return reinterpret_cast<struct _RTL_SRWLOCK*>(&word_); }

 private:
  void* word_ = nullptr;
};
#elif XLA_THREADS
using std::mutex;
#else
class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() noexcept {}
  bool try_lock() noexcept { return true; }
  void unlock() noexcept {}
};
#endif

#if XLA_THREADS
using std::call_once;
using std::once_flag;
using std::unique_lock;
#else
struct once_flag {
  bool called = false;
};
template <class F>
void call_once(once_flag& flag, F&& f) {
  if (flag.called) return;
  f();
  flag.called = true;
}

/// What libc++ without threads leaves out.
template <class Mutex>
class unique_lock {
 public:
  explicit unique_lock(Mutex& lock) noexcept : lock_(&lock) { lock_->lock(); }
  unique_lock(Mutex& lock, std::try_to_lock_t) noexcept : lock_(&lock), owns_(lock.try_lock()) {}
  unique_lock(unique_lock&& other) noexcept : lock_(other.lock_), owns_(other.owns_) {
    other.owns_ = false;
  }
  ~unique_lock() {
    if (owns_) lock_->unlock();
  }
  void lock() noexcept {
    lock_->lock();
    owns_ = true;
  }
  bool try_lock() noexcept { return owns_ = lock_->try_lock(); }
  void unlock() noexcept {
    lock_->unlock();
    owns_ = false;
  }
  bool owns_lock() const noexcept { return owns_; }
  explicit operator bool() const noexcept { return owns_; }

 private:
  Mutex* lock_;
  bool owns_ = true;
};
#endif

}  // namespace xla::sys
