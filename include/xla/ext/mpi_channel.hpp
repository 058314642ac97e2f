// SPDX-License-Identifier: Apache-2.0
#pragma once

// The order of exchanges between this process and the others, and who drives them while replicas
// wait. mpi_world.hpp owns one; mpi_transport.hpp moves the bytes.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/system/condition_variable.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/ext/mpi_liveness.hpp"
#include "xla/ext/mpi_transport.hpp"
#include "xla/kernel/threads/pool.hpp"

namespace xla::mpi::detail {

/// The state of one exchange among the replicas of this process, which start it one after another
/// and wait for it.
struct rendezvous {
  const process_map* all = nullptr;
  std::vector<started> own;
  int come = 0, gone = 0;
  std::atomic<std::uint64_t> number{0};  ///< among those of the process, from 1
  std::atomic<bool> done{false};
};

/// The backoff of a polling thread, which nothing wakes. It first spins longer than the sleeps that
/// follow, because other processes are seldom far behind; otherwise two processes could miss each
/// other again and again. Sleeps grow with the time waited, so that they delay a long wait little
/// and cost less than a hundredth of a core.
class backoff {
 public:
  using clock = std::chrono::steady_clock;

  clock::duration waited() const { return clock::now() - since_; }
  /// Pauses; true if it slept.
  bool take() {
    if (awake_ && ++looks_ % 64 != 0) {
      kernel::detail::pause();
    } else if (awake_) {
      awake_ = waited() < std::chrono::microseconds(300);
      sys::yield();  // they may need this very core
    } else {
      sleep();
    }
    return !awake_;
  }
  /// Sleeps at once, as another thread has work for the core.
  void sleep() const {
    using namespace std::chrono_literals;
    const clock::duration so_far = waited();
    sys::sleep_for(so_far < 50ms ? clock::duration(50us)
                                 : std::min<clock::duration>(so_far / 50, 4ms));
  }

 private:
  clock::time_point since_ = clock::now();
  unsigned looks_ = 0;
  bool awake_ = true;
};

/// The exchanges between this process and the others, one at a time, in the order in which all
/// replicas of this process have started them. A waiting replica drives the current exchange; a
/// thread does while all replicas compute.
class channel {
 private:
  std::atomic<std::uint64_t> begun_{0},
      done_{0};  // exchanges that all replicas of this process have started

 public:
  liveness peers;

  /// alone: MPI permits calls from a thread of this object, so exchanges progress without a waiting
  /// replica.
  channel(MPI_Comm comm, int rank, int ranks, bool fast, bool alone)
      : peers(rank, ranks, begun_), transport_(comm, fast), alone_(alone) {
    if (alone_) thread_ = sys::thread([this] { drive_in_background(); });
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel() { stop(); }

  bool progresses_alone() const noexcept { return alone_; }

  /// Called when all replicas of this process have started an exchange.
  void add(rendezvous& m) {
    const std::lock_guard hold(lock_);
    ready_.push_back(&m);
    m.number = begun_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  /// Makes progress on the current exchange; false if it cannot at the moment.
  bool drive() noexcept {
    const sys::unique_lock hold(driving_, std::try_to_lock);
    if (!hold.owns_lock() || over()) return false;
    try {
      bool moved = false;
      while ((now_ || take_next()) && transport_.advance(elements_, over_, moved)) {
        done_.fetch_add(1, std::memory_order_relaxed);
        std::exchange(now_, nullptr)->done.store(true, std::memory_order_release);
      }
      return moved;
    } catch (const replica_error& e) {
      end(e.ordinal(), e.what());
    } catch (const std::exception& e) {
      if (peers.ended_within(std::chrono::seconds(1)))
        return false;  // MPI does not notice dead processes
      const int own = now_->all->at(now_->all->rank);
      end(own, replica_name(own, now_->all->world_size()) + ": " + e.what());
    }
    return false;
  }

  /// Held by a replica while it waits and drives. If no replica holds it, the thread takes over.
  class waiting_guard {
   public:
    explicit waiting_guard(channel& c) : channel_(c) { ++c.waiting_; }
    waiting_guard(const waiting_guard&) = delete;
    ~waiting_guard() {
      {
        const std::lock_guard hold(channel_.lock_);
        --channel_.waiting_;
      }
      channel_.call_helper();
    }

   private:
    channel& channel_;
  };
  void call_helper() noexcept {
    if (alone_ && needs_driver()) work_.notify_one();
  }

  /// Ends the world for all processes, unless it has ended.
  void end(int ordinal, const std::string& why) noexcept {
    rest();
    try {
      peers.end(ordinal, why);
    } catch (...) {  // no memory for a message: the others will notice that this process is gone
    }
  }
  bool over() const noexcept { return over_.load(std::memory_order_acquire) || peers.ended(); }
  /// After it returns nobody accesses elements any more.
  void rest() noexcept {
    over_.store(true, std::memory_order_release);
    const std::lock_guard hold(elements_);
  }
  /// Exchanges a number with the other processes, by rank. Throws replica_error when a process does
  /// not take part.
  std::vector<int> all_gather(int value, double timeout) {
    std::vector<int> all;
    const int missing = peers.all_gather(value, timeout, all);
    if (missing < 0) return all;
    if (!peers.ended())
      end(missing, "rank " + std::to_string(missing) + " has not come to xla::launch, or to the " +
                       "world that others begin, in " + shown(timeout) + " s");
    const auto how = peers.how_it_ended();
    if (how.ordinal < 0) throw replica_error(died(how.rank), how.rank, nullptr);
    throw replica_error(how.why, how.ordinal, nullptr);
  }
  static std::string died(int rank) {
    return "rank " + std::to_string(rank) + " has died: the system closed its connections";
  }
  static std::string shown(double seconds) {
    std::string s = std::to_string(seconds);
    s.erase(s.find_last_not_of('0') + 1);
    if (s.back() == '.') s.pop_back();
    return s;
  }

  /// Says that this process is at its end; false when the world has ended before.
  bool leave() {
    // MPI may still have unsent data for others; it sends them when it is called.
    const bool together = !over() && peers.leave([this] {
      const std::lock_guard hold(driving_);
      transport_.poll();
    });
    stop();
    return together;
  }
  /// Keeps objects alive that MPI or another thread may still access.
  void keep(std::shared_ptr<void> remains) {
    const std::lock_guard hold(lock_);
    remains_.push_back(std::move(remains));
  }

 private:
  bool take_next() {
    const std::lock_guard hold(lock_);
    if (ready_.empty()) return false;
    now_ = ready_.front();
    ready_.pop_front();
    transport_.begin(*now_->all, now_->own);
    return true;
  }
  void stop() {
    {
      const std::lock_guard hold(lock_);
      stop_ = true;
    }
    work_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  bool needs_driver() const { return begun_ != done_ && waiting_ == 0 && !over(); }
  /// The thread's function. It polls, because MPI wakes nobody when a message arrives.
  void drive_in_background() {
    sys::unique_lock hold(lock_);
    while (!stop_) {
      work_.wait(hold, [&] { return stop_ || needs_driver(); });
      hold.unlock();
      for (backoff between; needs_driver() && !stop_;)
        if (drive()) between = {};
        else between.sleep();
      hold.lock();
    }
  }

  transport transport_;
  const bool alone_;
  sys::mutex driving_;   // held by who helps
  sys::mutex elements_;  // held while they are read and written
  std::atomic<bool> over_{false};
  std::atomic<int> waiting_{0};    // replicas that wait, and drive
  rendezvous* now_ = nullptr;      // under way
  sys::mutex lock_;                // of what follows
  sys::condition_variable work_;
  std::deque<rendezvous*> ready_;
  std::vector<std::shared_ptr<void>> remains_;
  std::atomic<bool> stop_{false};
  sys::thread thread_;
};

}  // namespace xla::mpi::detail
