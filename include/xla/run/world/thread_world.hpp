// SPDX-License-Identifier: Apache-2.0
#pragma once

// The transport between replicas that are threads of one process. Between processes it is
// ext/mpi_world.hpp; both implement the interface of replica.hpp.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/condition_variable.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/kernel/threads/pool.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/world/launch.hpp"
#include "xla/run/world/rendezvous.hpp"

namespace xla::detail {

/// Replicas that are threads of this process: they read and write each other's memory.
template <class In>
class basic_thread_world final : public world {
 public:
  /// timeout: the number of seconds that a replica waits for the others.
  basic_thread_world(int replicas, double timeout) : timeout_(std::min(timeout, forever)) {
    for (int i = 0; i < replicas; ++i)
      replicas_.push_back(std::make_unique<member>(*this, i, replicas));
  }
  int size() const noexcept override { return replicas_.size(); }
  replica& at(int i) override { return *replicas_[i]; }
  std::exception_ptr error() const noexcept override {
    const auto hold = held();
    return error_;
  }

 private:
  class member final : public replica {
   public:
    member(basic_thread_world& of, int number, int size) : replica(number, size), world_(of) {}
    std::uint64_t start(const exchange& e) override {
      world_.arrive(ordinal, next_, e);
      return next_++;
    }
    void wait(std::uint64_t ticket) override { world_.take_part(ordinal, ticket); }
    void abort(std::exception_ptr why) noexcept override { world_.fail(ordinal, why); }
    bool progresses_alone() const noexcept override { return false; }
    bool shares_memory() const noexcept override { return true; }

   private:
    basic_thread_world& world_;
    std::uint64_t next_ = 1;
  };
  using owned = std::unique_ptr<dependent<In, rendezvous>>;

  void arrive(int ordinal, std::uint64_t ticket, const exchange& e) {
    if (over_.load(std::memory_order_acquire)) throw_error();
    auto hold = held();
    dependent<In, rendezvous>& m = of_ticket(ticket);
    if (!m.arrive(ordinal, e)) return;
    exchange_summary all;
    if (const int other = m.mismatch(all); other >= 0) {
      hold.unlock();
      end(other, how_it_differs(m.about(other), all, 0));
    }
    m.open();
    if (sleepers_ > 0) changed_.notify_all();
  }
  /// Takes the lock. It is held for moments only, so a thread that finds it taken retries before it
  /// sleeps.
  sys::unique_lock<sys::mutex> held() const {
    sys::unique_lock hold(lock_, std::try_to_lock);
    for (int i = 0; !hold && i < 100; ++i) {
      kernel::detail::pause();
      hold.try_lock();
    }
    if (!hold) hold.lock();
    return hold;
  }
  /// Under the lock.
  dependent<In, rendezvous>& of_ticket(std::uint64_t ticket) {
    while (ticket - first_ >= queue_.size()) {
      if (free_.empty()) free_.push_back(std::make_unique<dependent<In, rendezvous>>(size()));
      free_.back()->begin();
      queue_.push_back(std::move(free_.back()));
      free_.pop_back();
    }
    return *queue_[static_cast<std::size_t>(ticket - first_)];
  }

  void take_part(int ordinal, std::uint64_t ticket) {
    auto hold = held();
    dependent<In, rendezvous>& m = of_ticket(ticket);
    hold.unlock();
    while (!await([&] { return m.complete(); }, timeout_))
      if (const std::string others = missing(m); !others.empty())  // they may have arrived by now
        end(ordinal, join({"waited ", shown(timeout_), " s in ", describe(m.about(ordinal)),
                           " for ", others}));
    if (!m.done()) work(ordinal, m);
    await([&] { return m.done(); }, forever);
    leave(m);
  }
  void work(int ordinal, dependent<In, rendezvous>& m) {
    // Sequentially consistent with `rest`: either `rest` sees this replica working, or this replica
    // sees that the world is over.
    working_.fetch_add(1);
    std::exception_ptr problem;
    try {
      kernel::parallel_for(std::min<std::int64_t>(num_threads(), m.chunks()),
                           [&](std::int64_t) { m.work(over_); });
    } catch (...) {
      problem = std::current_exception();
    }
    working_.fetch_sub(1);
    if (problem) {
      fail(ordinal, problem);
      std::rethrow_exception(problem);
    }
    if (!m.done()) return;
    const auto hold = held();
    if (sleepers_ > 0) changed_.notify_all();
  }
  void leave(dependent<In, rendezvous>& m) {
    const auto hold = held();
    m.leave();
    for (; !queue_.empty() && queue_.front()->empty(); ++first_) {
      free_.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }

  /// Waits until ready(): first spins, because others are seldom far behind, then sleeps. False
  /// after `seconds`; throws if the world has ended.
  template <class Ready>
  bool await(Ready ready, double seconds) {
    kernel::detail::spin_limit left;
    for (int rounds = 0; !ready() && !over_.load(std::memory_order_acquire) && !left.spent();)
      if (++rounds % 64 == 0) sys::yield();  // they may need this very core
    if (!ready()) {
      const auto until = clock::now() + std::chrono::duration<double>(seconds);
      auto hold = held();
      ++sleepers_;
      const bool in_time =
          changed_.wait_until(hold, std::chrono::time_point_cast<clock::duration>(until),
                              [&] { return ready() || over_.load(std::memory_order_acquire); });
      --sleepers_;
      if (!in_time) return false;
    }
    if (!ready()) throw_error();
    return true;
  }

  [[gnu::cold]] std::string missing(const dependent<In, rendezvous>& m) const {
    const auto hold = held();
    std::string all;
    for (int i = 0; i < size(); ++i)
      if (!m.came(i)) all += (all.empty() ? "replica " : ", replica ") + std::to_string(i);
    return all;
  }
  [[gnu::cold]] static std::string shown(double seconds) {
    std::string s = std::to_string(seconds);
    while (s.back() == '0') s.pop_back();
    if (s.back() == '.') s.pop_back();
    return s;
  }
  [[noreturn, gnu::cold]] void end(int ordinal, const std::string& why) {
    fail(ordinal, std::make_exception_ptr(runtime_error(why)));
    throw_error();
  }
  [[gnu::cold]] void fail(int ordinal, std::exception_ptr why) noexcept {
    {
      const auto hold = held();
      if (!error_) error_ = error_of_replica(ordinal, size(), std::move(why));
      over_.store(true);
    }
    changed_.notify_all();
    rest();
  }
  [[noreturn, gnu::cold]] void throw_error() {
    rest();
    std::rethrow_exception(error());
  }
  /// After the end of the world: waits until nobody accesses elements any more.
  [[gnu::cold]] void rest() noexcept {
    while (working_.load() != 0) sys::yield();
  }

  using clock = std::chrono::steady_clock;
  static constexpr double forever = 1e8;  ///< seconds
  const double timeout_;
  list<std::unique_ptr<member>> replicas_;
  mutable sys::mutex lock_;
  sys::condition_variable changed_;
  int sleepers_ = 0;
  std::uint64_t first_ = 1;  // the lowest ticket that is still in use
  std::deque<owned> queue_;
  list<owned> free_;
  std::exception_ptr error_;
  std::atomic<bool> over_{false};
  std::atomic<int> working_{0};
};
using thread_world = basic_thread_world<void>;

template <class>
double replica_timeout() {
  if (const char* text = std::getenv("XLA_REPLICA_TIMEOUT"))
    if (const double seconds = std::strtod(text, nullptr); seconds > 0) return seconds;
  return 1800;
}

template <class In>
std::unique_ptr<world> open_world(int replicas, double timeout) {
  if (world_maker* const maker = the_process.worlds.load(std::memory_order_acquire))
    return maker->open(replicas, timeout);
  return std::make_unique<dependent<In, thread_world>>(replicas, timeout);
}

}  // namespace xla::detail
