// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread that is joined when its object is destroyed, as by std::jthread.

#include <utility>

#include "xla/base/system/thread.hpp"

namespace xla::sys {

/// A thread that is joined at its end; libc++ has no std::jthread yet without a flag.
class joining_thread {
 public:
  joining_thread() noexcept = default;
  template <class F>
  explicit joining_thread(F&& f) : thread_(std::forward<F>(f)) {}
  joining_thread(joining_thread&&) noexcept = default;
  joining_thread& operator=(joining_thread&& other) noexcept {
    std::swap(thread_, other.thread_);
    return *this;
  }
  ~joining_thread() {
    if (joinable()) join();
  }
  bool joinable() const noexcept { return thread_.joinable(); }
  void join() { thread_.join(); }

 private:
  thread thread_;
};

}  // namespace xla::sys
