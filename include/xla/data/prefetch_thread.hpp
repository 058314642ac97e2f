// SPDX-License-Identifier: Apache-2.0
#pragma once

// The thread behind prefetch.hpp, compiled once for values of all types. Without threads a value is
// made when it is taken.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

#include "xla/base/dependent.hpp"
#include "xla/base/system/condition_variable.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/data/prefetch.hpp"
#include "xla/tensor/device.hpp"

namespace xla::data::detail {

/// The thread, the values that are ready, and the exception that has ended it.
template <class In>
struct basic_prefetch_thread<In>::state {
  state(std::int64_t count, std::int64_t ahead, prefetch_source source)
      : source_(source),
        left_(count),
        count_(count),
        ahead_(static_cast<std::size_t>(std::max<std::int64_t>(ahead, 1))) {
    if constexpr (sys::has_threads)
      worker_ = sys::thread([this, device = xla::device<In>()] {
        const xla::dependent<In, device_guard> here(device);
        work();
      });
  }
  ~state() {
    {
      const std::lock_guard hold(lock_);
      stopped_ = true;
    }
    room_.notify_one();
    if (worker_.joinable()) worker_.join();
    for (void* value : ready_) source_.free(value);
  }

  void* take() {
    sys::unique_lock hold(lock_);
    if (left_ == 0) return nullptr;
    if constexpr (!sys::has_threads) return source_.make(source_.self, count_ - left_--);
    arrived_.wait(hold, [&] { return !ready_.empty() || failure_; });
    if (ready_.empty()) std::rethrow_exception(failure_);
    void* const value = ready_.front();
    ready_.erase(ready_.begin());
    --left_;
    hold.unlock();
    room_.notify_one();
    return value;
  }

 private:
  void work() {
    try {
      for (std::int64_t i = 0; i < count_; ++i) {
        if (!wait_for_room()) return;
        keep(source_.make(source_.self, i));
        arrived_.notify_one();
      }
    } catch (...) {
      const std::lock_guard hold(lock_);
      failure_ = std::current_exception();
      arrived_.notify_one();
    }
  }
  void keep(void* value) {
    const std::lock_guard hold(lock_);
    try {
      ready_.push_back(value);
    } catch (...) {
      source_.free(value);
      throw;
    }
  }
  /// False when no more values are needed.
  bool wait_for_room() {
    sys::unique_lock hold(lock_);
    room_.wait(hold, [&] { return stopped_ || ready_.size() < ahead_; });
    return !stopped_;
  }

  prefetch_source source_;
  sys::mutex lock_;
  sys::condition_variable arrived_, room_;
  std::vector<void*> ready_;  // at most ahead_ entries
  std::exception_ptr failure_;
  std::int64_t left_, count_;
  std::size_t ahead_;
  bool stopped_ = false;
  sys::thread worker_;
};

template <class In>
basic_prefetch_thread<In>::basic_prefetch_thread(std::int64_t count, std::int64_t ahead,
                                                 prefetch_source source)
    : state_(new state(count, ahead, source)) {}

template <class In>
basic_prefetch_thread<In>::~basic_prefetch_thread() {
  delete state_;
}

template <class In>
void* basic_prefetch_thread<In>::take() {
  return state_->take();
}
XLA_LIBRARY_INSTANCE(class basic_prefetch_thread<void>);

}  // namespace xla::data::detail
