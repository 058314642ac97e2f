// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::detail {

/// The thread that runs traced graphs one after the other, in the order of their tickets, while the
/// program goes on recording.
template <class In>
class basic_executor {
 public:
  static basic_executor& instance() {
    static basic_executor e;
    return e;
  }
  ~basic_executor() {
    {
      const std::lock_guard hold(lock_);
      stop_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  /// The ticket that the next job will have.
  std::uint64_t next_ticket() {
    const std::lock_guard hold(lock_);
    return issued_ + 1;
  }
  /// Hands over a job, an object with run(); an idle executor lets the caller do it where it says
  /// here: small ones, and those for which it waits.
  template <class Job>
  void submit(std::shared_ptr<Job> job, bool here) {
    submit(task{[](void* j) { static_cast<Job*>(j)->run(); }, std::move(job)}, here);
  }
  /// Waits for a job; rethrows what it threw.
  void wait(std::uint64_t ticket) {
    if (done_.load(std::memory_order_acquire) < ticket) {
      std::unique_lock hold(lock_);
      finished_.wait(hold, [&] { return done_.load(std::memory_order_acquire) >= ticket; });
    }
    if (failures_.load(std::memory_order_acquire) == 0) return;
    const std::lock_guard hold(lock_);
    for (const auto& [failed, problem] : failed_)
      if (failed == ticket) std::rethrow_exception(problem);
  }
  void wait_all() {
    std::uint64_t last = 0;
    {
      const std::lock_guard hold(lock_);
      last = issued_;
    }
    wait(last);
  }

 private:
  static constexpr std::uint64_t ahead = 2;  ///< executions under way at most: one runs, one waits
  struct task {
    void (*run)(void*);
    later<In, std::shared_ptr<void>> job;
  };
  struct entry {
    std::uint64_t ticket;
    task work;
  };
  basic_executor() = default;

  void submit(task job, bool here) {
    std::unique_lock hold(lock_);
    const std::uint64_t ticket = ++issued_;
    // A program that records faster than its graphs run must not fill the memory.
    finished_.wait(hold, [&] { return done_.load(std::memory_order_acquire) + ahead >= ticket; });
    if (here && done_.load(std::memory_order_acquire) + 1 == ticket) {
      hold.unlock();
      finish(ticket, job);
      return;
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    queue_.push_back({ticket, std::move(job)});
    hold.unlock();
    wake_.notify_one();
  }
  void finish(std::uint64_t ticket, task& job) {
    std::exception_ptr problem;
    try {
      job.run(job.job.get());
    } catch (...) {
      problem = std::current_exception();
    }
    job.job.reset();
    {
      const std::lock_guard hold(lock_);
      if (problem) {
        failed_.emplace_back(ticket, problem);
        failures_.fetch_add(1, std::memory_order_release);
      }
      done_.store(ticket, std::memory_order_release);
    }
    finished_.notify_all();
  }
  void serve() {
    for (;;) {
      std::unique_lock hold(lock_);
      wake_.wait(hold, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      entry e = std::move(queue_.front());
      queue_.pop_front();
      hold.unlock();
      finish(e.ticket, e.work);
    }
  }

  std::mutex lock_;
  std::condition_variable wake_, finished_;
  later<In, std::deque<entry>> queue_;
  later<In, std::vector<std::pair<std::uint64_t, std::exception_ptr>>> failed_;
  std::atomic<int> failures_{0};
  std::uint64_t issued_ = 0;
  std::atomic<std::uint64_t> done_{0};
  bool stop_ = false;
  std::thread thread_;
};
using executor = basic_executor<void>;

/// Waits until the elements of a buffer are there.
template <class In = void>
void wait_for(buffer& b) {
  std::uint64_t ticket = b.ticket.load(std::memory_order_acquire);
  if (ticket == 0) return;
  later<In, executor>::instance().wait(ticket);
  b.ticket.compare_exchange_strong(ticket, 0);
}
XLA_INSTANCE(void wait_for<void>(buffer&));

}  // namespace xla::detail
