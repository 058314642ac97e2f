// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace xla::data {

/// Makes values in order on a thread of its own, at most `ahead` (at least 1) before they are
/// taken. What making a value throws, taking it throws. Destroying it waits for the value in the
/// making.
template <class Value>
class Prefetcher {
 public:
  /// The values are make(0), make(1), …, make(count - 1), called on the other thread.
  template <class Make>
  Prefetcher(std::int64_t count, std::int64_t ahead, Make make)
      : left_(count), ahead_(static_cast<std::size_t>(std::max<std::int64_t>(ahead, 1))) {
    worker_ = std::thread([this, count, make = std::move(make)] { work(count, make); });
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher() {
    {
      const std::lock_guard hold(lock_);
      stopped_ = true;
    }
    room_.notify_one();
    worker_.join();
  }

  /// The next value; null behind the last. After an exception the same one again.
  std::unique_ptr<Value> take() {
    std::unique_lock hold(lock_);
    if (left_ == 0) return nullptr;
    arrived_.wait(hold, [&] { return !ready_.empty() || failure_; });
    if (ready_.empty()) std::rethrow_exception(failure_);
    auto value = std::move(ready_.front());
    ready_.pop_front();
    --left_;
    hold.unlock();
    room_.notify_one();
    return value;
  }

 private:
  template <class Make>
  void work(std::int64_t count, const Make& make) {
    try {
      for (std::int64_t i = 0; i < count; ++i) {
        if (!wait_for_room()) return;
        auto value = std::make_unique<Value>(make(i));
        {
          const std::lock_guard hold(lock_);
          ready_.push_back(std::move(value));
        }
        arrived_.notify_one();
      }
    } catch (...) {
      const std::lock_guard hold(lock_);
      failure_ = std::current_exception();
      arrived_.notify_one();
    }
  }
  /// False when nobody wants more.
  bool wait_for_room() {
    std::unique_lock hold(lock_);
    room_.wait(hold, [&] { return stopped_ || ready_.size() < ahead_; });
    return !stopped_;
  }

  std::mutex lock_;
  std::condition_variable arrived_, room_;
  std::deque<std::unique_ptr<Value>> ready_;
  std::exception_ptr failure_;
  std::int64_t left_;
  std::size_t ahead_;
  bool stopped_ = false;
  std::thread worker_;
};

}  // namespace xla::data
