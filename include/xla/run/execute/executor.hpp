// SPDX-License-Identifier: Apache-2.0
#pragma once

// The thread that runs traced graphs while the program records the next one. Each device has one;
// compiled functions run on the caller's thread instead, and without threads traced graphs do.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/system/condition_variable.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::detail {

/// A job of an executor. If it failed it is kept, to report the error.
struct execution_job {
  std::uint64_t ticket = 0;
  std::exception_ptr problem;
  std::shared_ptr<execution_job> next;

  virtual void run() = 0;
  virtual void release() noexcept = 0;  ///< releases its references, run or not

 protected:
  ~execution_job() = default;
};

/// The thread of a device that runs traced graphs one after the other, in the order of their
/// tickets, while the program continues recording. A ticket's highest byte is the device's number.
template <class In>
class basic_executor : exit_hook {
 public:
  using job = dependent<In, std::shared_ptr<execution_job>>;

  static basic_executor& instance() { return made_once(this_thread.device->executions); }
  /// The device that has issued a ticket.
  static basic_executor& of(std::uint64_t ticket) {
    return made_once(device_of(static_cast<int>(ticket >> device_bit)).executions);
  }
  static constexpr fork_order order = fork_order::executions;
  [[gnu::cold]] basic_executor()
      : exit_hook{[](exit_hook& e) { static_cast<basic_executor&>(e).stop(); }} {
    end_at_exit(*this);
  }

  /// True when all jobs are done. One caller at a time, as for the next two.
  bool idle() {
    const std::lock_guard hold(lock_);
    return done_.load(std::memory_order_acquire) == issued_;
  }
  /// Waits for room, and returns the ticket of the next job. May throw; submit() does not.
  std::uint64_t reserve() {
    sys::unique_lock hold(lock_);
    const std::uint64_t ticket = issued_ + 1;
    // A program that records faster than its graphs run must not fill the memory.
    finished_.wait(hold, [&] { return done_.load(std::memory_order_acquire) + ahead >= ticket; });
    if (sys::has_threads && !thread_.joinable()) begin();
    return ticket;
  }
  void submit(const job& j) noexcept {
    {
      const std::lock_guard hold(lock_);
      j->ticket = ++issued_;
      if constexpr (sys::has_threads) waiting_[j->ticket % ahead] = j;
    }
    if constexpr (sys::has_threads) return wake_.notify_one();
    finish(*j);
    done(j);
  }

  /// Waits for a job; rethrows its exception.
  void wait(std::uint64_t ticket) {
    wait_until(ticket);
    check(ticket);
  }
  /// The same for a job on this device, possibly the running one.
  [[gnu::cold, gnu::noinline]] void wait_for_other(std::uint64_t ticket) {
    basic_executor& e = of(ticket);
    if (&e == this) check(ticket);  // a job reads results of earlier jobs, or of itself
    else e.wait(ticket);
  }
  /// Throws the exception of a finished job, if any.
  void check(std::uint64_t ticket) {
    if (failures_.load(std::memory_order_acquire) != 0) rethrow(ticket);
  }
  [[gnu::cold, gnu::noinline]] void rethrow(std::uint64_t ticket) {
    const std::lock_guard hold(lock_);
    for (const execution_job* j = failed_.get(); j; j = j->next.get())
      if (j->ticket == ticket) std::rethrow_exception(j->problem);
  }
  /// fork() waits until no job runs; a child starts a thread of its own.
  [[gnu::cold]] void before_fork() {
    lock_.lock();
    while (done_.load(std::memory_order_acquire) != issued_) {
      lock_.unlock();
      sys::yield();
      lock_.lock();
    }
  }
  void abandon() noexcept { after_fork(true); }
  [[gnu::cold]] void after_fork(bool child) noexcept {
    if (!child) return lock_.unlock();
    ::new (&lock_) sys::mutex;  // like the others: for threads that do not exist here
    ::new (&wake_) sys::condition_variable;
    ::new (&finished_) sys::condition_variable;
    ::new (&thread_) sys::thread;
  }
  /// Waits for all jobs, and returns the ticket of the last.
  std::uint64_t wait_all() {
    lock_.lock();
    const std::uint64_t last = issued_;
    lock_.unlock();
    wait_until(last);
    return last;
  }

 private:
  static constexpr std::uint64_t ahead = 2;  ///< the most executions in flight: one runs, one waits
  static constexpr int device_bit = 56;
  static std::uint64_t first() { return std::uint64_t{this_thread.number} << device_bit; }
  [[gnu::noinline]] void wait_until(std::uint64_t ticket) {
    if (done_.load(std::memory_order_acquire) >= ticket) return;
    sys::unique_lock hold(lock_);
    finished_.wait(hold, [&] { return done_.load(std::memory_order_acquire) >= ticket; });
  }
  /// Ends the thread when it has run all jobs; a later job starts another.
  [[gnu::cold]] void stop() {
    {
      const std::lock_guard hold(lock_);
      stop_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    stop_ = false;
  }
  [[gnu::cold, gnu::noinline]] void begin() {
    thread_ = sys::thread([this, device = this_thread.device] {
      work_on<In>(*device);
      this_thread.chose = true;
      if (const auto pin = kernel::detail::pin_to_cores.load()) pin(*kernel::detail::own_cores);
      serve();
    });
  }
  void serve() {
    for (;;) {
      sys::unique_lock hold(lock_);
      job& next = waiting_[(done_.load(std::memory_order_acquire) + 1) % ahead];
      wake_.wait(hold, [&] { return stop_ || next; });
      if (!next) return;
      const job j = std::move(next);
      hold.unlock();
      finish(*j);
      done(j);
    }
  }
  void finish(execution_job& j) noexcept {
    try {
      j.run();
    } catch (...) {
      j.problem = std::current_exception();
    }
    j.release();
  }
  void done(const job& j) noexcept {
    {
      const std::lock_guard hold(lock_);
      if (j->problem) {
        failures_.fetch_add(1, std::memory_order_release);
        j->next = std::exchange(failed_, j);
      }
      done_.store(j->ticket, std::memory_order_release);
    }
    finished_.notify_all();
  }

  sys::mutex lock_;
  sys::condition_variable wake_, finished_;
  job waiting_[ahead];
  job failed_;
  std::atomic<int> failures_{0};
  std::uint64_t issued_ = first();
  std::atomic<std::uint64_t> done_{first()};
  bool stop_ = false;
  sys::thread thread_;
};
using executor = basic_executor<void>;

/// Waits until the elements of a buffer are there.
template <class In = void>
void wait_for(buffer& b) {
  std::uint64_t ticket = b.ticket.load(std::memory_order_acquire);
  if (ticket == 0) return;
  dependent<In, executor>::of(ticket).wait(ticket);
  b.ticket.compare_exchange_strong(ticket, 0);
}
XLA_INSTANCE(void wait_for<void>(buffer&));

}  // namespace xla::detail
