// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "xla/base/fork.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::detail {

/// What an executor runs. It is kept where it failed, to say so.
struct execution_job {
  std::uint64_t ticket = 0;
  std::exception_ptr problem;
  std::shared_ptr<execution_job> next;

  virtual ~execution_job() = default;
  virtual void run() = 0;
  virtual void release() noexcept = 0;  ///< lets go of what it held, run or not
};

/// The thread that runs traced graphs one after the other, in the order of their tickets, while the
/// program goes on recording.
template <class In>
class basic_executor {
 public:
  using job = later<In, std::shared_ptr<execution_job>>;

  static basic_executor& instance() {
    // Never freed: the destructor of another static object may still compute.
    static basic_executor& e = held_at_fork(*new basic_executor, fork_order::executions);
    static const struct at_exit {
      ~at_exit() { e.stop(); }
    } join;
    return e;
  }

  /// Where the next job will run: an idle executor lets the caller do it where it says here, small
  /// ones and those for which it waits. Waits for room; one caller at a time, up to its submit().
  bool reserve(std::uint64_t& ticket, bool here) {
    std::unique_lock hold(lock_);
    ticket = issued_ + 1;
    // A program that records faster than its graphs run must not fill the memory.
    finished_.wait(hold, [&] { return done_.load(std::memory_order_acquire) + ahead >= ticket; });
    here = here && done_.load(std::memory_order_acquire) + 1 == ticket;
    if (!here && !thread_.joinable()) thread_ = std::thread([this] { serve(); });
    return here;
  }
  /// Issues the ticket. Where the caller runs the job, that is done by finish().
  void submit(const job& j, bool here) noexcept {
    {
      const std::lock_guard hold(lock_);
      j->ticket = ++issued_;
      if (here) return;
      waiting_[j->ticket % ahead] = j;
    }
    wake_.notify_one();
  }
  void finish(job j) noexcept {
    try {
      j->run();
    } catch (...) {
      j->problem = std::current_exception();
    }
    j->release();
    {
      const std::lock_guard hold(lock_);
      if (j->problem) {
        failures_.fetch_add(1, std::memory_order_release);
        j->next = std::exchange(failed_, j);
      }
      done_.store(j->ticket, std::memory_order_release);
    }
    finished_.notify_all();
    wake_.notify_one();
  }

  /// Waits for a job; rethrows what it threw.
  void wait(std::uint64_t ticket) {
    if (done_.load(std::memory_order_acquire) < ticket) {
      std::unique_lock hold(lock_);
      finished_.wait(hold, [&] { return done_.load(std::memory_order_acquire) >= ticket; });
    }
    check(ticket);
  }
  /// Throws what a job that is done threw.
  void check(std::uint64_t ticket) {
    if (failures_.load(std::memory_order_acquire) == 0) return;
    const std::lock_guard hold(lock_);
    for (const execution_job* j = failed_.get(); j; j = j->next.get())
      if (j->ticket == ticket) std::rethrow_exception(j->problem);
  }
  /// The process forks when no job runs; a child starts a thread of its own.
  void before_fork() {
    lock_.lock();
    while (done_.load(std::memory_order_acquire) != issued_) {
      lock_.unlock();
      std::this_thread::yield();
      lock_.lock();
    }
  }
  void after_fork(bool child) noexcept {
    if (!child) return lock_.unlock();
    ::new (&lock_) std::mutex;  // as are the others: made for threads that are not here
    ::new (&wake_) std::condition_variable;
    ::new (&finished_) std::condition_variable;
    ::new (&thread_) std::thread;
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
  basic_executor() = default;

  /// Ends the thread when it has run all jobs; a later one starts another.
  void stop() {
    {
      const std::lock_guard hold(lock_);
      stop_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    stop_ = false;
  }
  /// The next job, if it is here to be run.
  job* turn() {
    job& j = waiting_[(done_.load(std::memory_order_acquire) + 1) % ahead];
    return j ? &j : nullptr;
  }
  void serve() {
    for (;;) {
      std::unique_lock hold(lock_);
      wake_.wait(hold, [&] { return turn() || (stop_ && done_.load() == issued_); });
      if (!turn()) return;
      job j = std::move(*turn());
      hold.unlock();
      finish(std::move(j));
    }
  }

  std::mutex lock_;
  std::condition_variable wake_, finished_;
  job waiting_[ahead];
  job failed_;
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
