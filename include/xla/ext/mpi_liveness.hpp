// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which processes of a world are alive. MPI does not say: it waits forever for a killed process.
// Every process has a connection to rank 0, which notifies all others of the first failure. The
// kernel closes the connections of a dead process; one that computes or is stopped counts as alive.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/fork.hpp"
#include "xla/base/system/condition_variable.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/socket.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/ext/mpi_connection.hpp"

namespace xla::mpi::detail {

/// One process's view of the others, over its connections.
class liveness {
 public:
  using clock = std::chrono::steady_clock;

  /// begun: how many exchanges this process has begun.
  liveness(int rank, int size, const std::atomic<std::uint64_t>& begun)
      : rank_(rank), size_(size), begun_(begun) {
    left_.assign(static_cast<std::size_t>(size), not_yet);
    gathered_.resize(static_cast<std::size_t>(size));
    done_.assign(static_cast<std::size_t>(size), false);
  }
  liveness(const liveness&) = delete;
  liveness& operator=(const liveness&) = delete;
  ~liveness() {
    at_fork_->thing = nullptr;
    if (!service_.joinable()) return;
    {
      const std::lock_guard hold(lock_);
      stop_by_ = clock::now() + std::chrono::seconds(2);
      send_all({notice::kind::done, rank_});
      for (const connection& l : connections_) l.socket().shut_down();
    }
    service_.join();
  }

  /// Rank 0 only: listens, and returns its address. Throws `xla::runtime_error`.
  endpoint listen() {
    endpoint c;
    listener_ = listen_anywhere(c);
    if (!listener_) refuse("rank 0 finds no port to listen at");
    std::random_device random;
    c.word = std::uint64_t{random()} << 32 | random();
    return c;
  }
  /// Connects to rank 0; returns when all ranks have. Throws `xla::runtime_error`.
  void join(const endpoint& c) {
    rank_ == 0 ? accept_all(c) : connect_to_first(c);
    service_ = sys::thread([this] { serve(); });
    xla::detail::at_fork<>::add(*at_fork_);
  }

  /// The reason why the world ended early.
  struct ending {
    int rank = 0;
    int ordinal = -1;  ///< of the replica that failed; -1: the whole process died
    std::string why;
  };
  /// Ends the world for all ranks, unless it has ended.
  void end(int ordinal, const std::string& why) {
    broadcast({notice::kind::ends, rank_, static_cast<std::uint64_t>(ordinal) + 1}, why);
  }
  bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  bool ended_within(clock::duration time) {
    sys::unique_lock hold(lock_);
    return changed_.wait_for(hold, time, [&] { return ended(); });
  }
  /// Waits for the reason after this rank has ended the world itself: another rank may have been
  /// first.
  ending how_it_ended() {
    sys::unique_lock hold(lock_);
    changed_.wait(hold, [&] { return ended(); });
    return ending_;
  }
  /// A rank that has left after fewer exchanges than this; -1 if there is none.
  int left_before(std::uint64_t exchanges) const {
    const std::lock_guard hold(lock_);
    const auto at = std::find_if(left_.begin(), left_.end(), [&](auto n) { return n < exchanges; });
    return at == left_.end() ? -1 : static_cast<int>(at - left_.begin());
  }

  /// The ranks that have begun fewer exchanges than this, or do not answer: "1, 3".
  std::string lagging(std::uint64_t exchanges) {
    {
      const std::lock_guard hold(lock_);
      counts_.assign(static_cast<std::size_t>(size_), not_yet);
    }
    broadcast({notice::kind::count_query, rank_}, {});
    sys::unique_lock hold(lock_);
    changed_.wait_for(hold, std::chrono::seconds(1), [&] {
      return ended() || std::find(counts_.begin(), counts_.end(), not_yet) == counts_.end();
    });
    std::string all;
    for (int r = 0; r < size_; ++r)
      if (const auto n = counts_[static_cast<std::size_t>(r)]; n == not_yet || n < exchanges)
        all += (all.empty() ? "" : ", ") + std::to_string(r);
    return all;
  }

  /// Says that this rank begins no more exchanges. Returns true when no rank does, false when the
  /// world has ended. Until then it calls wait() every other millisecond.
  template <class F>
  bool leave(F wait) {
    broadcast({notice::kind::leaves, rank_, begun_.load()}, {});
    sys::unique_lock hold(lock_);
    while (!changed_.wait_for(hold, std::chrono::milliseconds(2), [&] {
      return ended() || std::find(left_.begin(), left_.end(), not_yet) == left_.end();
    })) {
      hold.unlock();
      wait();
      hold.lock();
    }
    return !ended();
  }
  /// Exchanges a number: all[r] is that of rank r. Returns -1, or a rank that did not take part in
  /// time.
  int all_gather(int value, double seconds, std::vector<int>& all) {
    broadcast({notice::kind::value, rank_, static_cast<std::uint64_t>(value)}, {});
    sys::unique_lock hold(lock_);
    int missing = -1;
    bool failed = false;
    const auto settled = [&] {
      missing = -1;
      failed = ended();
      for (int r = size_ - 1; r >= 0; --r)
        if (gathered_[static_cast<std::size_t>(r)].empty()) {
          missing = r;
          failed |= left_[static_cast<std::size_t>(r)] != not_yet;
        }
      return missing < 0 || failed;
    };
    changed_.wait_for(hold, std::chrono::duration<double>(std::min(seconds, 1e8)), settled);
    if (missing >= 0) return missing;
    for (auto& values : gathered_) {
      all.push_back(values.front());
      values.pop_front();
    }
    return -1;
  }
  /// Runs `call` on a thread of its own when the world ends, or at once if it has ended.
  void at_end(std::function<void()> call) {
    const std::lock_guard hold(lock_);
    if (ended()) return call();
    at_end_ = std::move(call);
  }

 private:
  static constexpr auto not_yet = std::numeric_limits<std::uint64_t>::max();
  static constexpr int patience = 60'000;  // ms, until all have joined

  /// Closes the connections in a forked child, which would otherwise keep them open after this
  /// process ends.
  static void after_fork(void* self, bool child) {
    if (!self || !child) return;
    for (const connection& l : static_cast<liveness*>(self)->connections_)
      l.socket().close_in_child();
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw runtime_error("mpi::Environment: " + why);
  }

  void accept_all(const endpoint& c) {
    connections_.resize(static_cast<std::size_t>(size_ - 1));
    for (int missing = size_ - 1; missing != 0;) {
      if (!listener_.readable(patience)) refuse_missing();
      connection peer{listener_.accept()};
      notice n;
      if (!peer || !peer.await(n, 2000) || n.what != notice::kind::joins || n.number != c.word ||
          n.rank < 1 || n.rank >= size_)
        continue;
      peer.send_notice({notice::kind::accepted, 0, c.word});
      connections_[static_cast<std::size_t>(n.rank - 1)] = std::move(peer);
      --missing;
    }
    listener_ = {};
    send_all({notice::kind::begins});
  }
  [[noreturn]] void refuse_missing() const {
    std::string missing;
    for (std::size_t i = 0; i < connections_.size(); ++i)
      if (!connections_[i]) missing += (missing.empty() ? "" : ", ") + std::to_string(i + 1);
    refuse("these ranks did not reach rank 0 by TCP in a minute: " + missing);
  }
  void connect_to_first(const endpoint& c) {
    for (int i = 0; i < c.count && connections_.empty(); ++i) {
      connection l{sys::connect_to(c.addresses[static_cast<std::size_t>(i)], c.port)};
      notice n;
      if (!l) continue;
      l.send_notice({notice::kind::joins, rank_, c.word});
      if (l.await(n, patience) && n.what == notice::kind::accepted && n.number == c.word)
        connections_.push_back(std::move(l));
    }
    if (connections_.empty())
      refuse("rank " + std::to_string(rank_) + " does not reach rank 0 by TCP, port " +
             std::to_string(c.port) + ", at any address of its machine");
    notice n;
    if (!connections_[0].await(n, 2 * patience) || n.what != notice::kind::begins)
      refuse("rank " + std::to_string(rank_) + " has lost rank 0 before all had joined");
  }

  /// Sends a notice to all ranks, through rank 0.
  void broadcast(const notice& n, const std::string& text) {
    if (rank_ == 0) return take(n, text);
    const std::lock_guard hold(lock_);
    send_all(n, text);
  }
  /// Sends a notice over all connections of this process. The caller holds `lock_`, so that notices
  /// do not mix.
  void send_all(const notice& n, const std::string& text = {}) const {
    for (const connection& l : connections_) l.send_notice(n, text);
  }

  /// The thread that receives notices until all connections have ended.
  void serve() {
    sys::socket_set open;
    for (const connection& l : connections_) open.add(l.socket());
    while (!open.empty()) {
      open.wait(200);
      for (std::size_t i = 0; i < open.size(); ++i)
        if (open.ready(i) && !receive(i)) open.remove(i);
      const std::lock_guard hold(lock_);
      if (clock::now() > stop_by_) return;
    }
  }
  /// False after the connection has ended.
  bool receive(std::size_t i) {
    const bool open = connections_[i].take();
    notice n;
    for (std::string text; connections_[i].next(n, text);) take(n, text);
    const auto other = rank_ == 0 ? i + 1 : 0;
    if (!open && !done_[other]) take({notice::kind::ends, static_cast<std::int32_t>(other)}, {});
    return open;
  }

  void take(const notice& n, const std::string& text) {
    const auto rank = static_cast<std::size_t>(n.rank);
    std::function<void()> call;
    bool answer = false;
    {
      const std::lock_guard hold(lock_);
      if (n.what == notice::kind::done) done_[rank] = true;
      if (n.what == notice::kind::leaves) left_[rank] = n.number;
      if (n.what == notice::kind::count_query) answer = true;
      if (n.what == notice::kind::counts && !counts_.empty()) counts_[rank] = n.number;
      if (n.what == notice::kind::value) gathered_[rank].push_back(static_cast<int>(n.number));
      if (n.what == notice::kind::ends) {
        if (ended()) return;
        ending_ = {n.rank, static_cast<int>(n.number) - 1, text};
        call = std::move(at_end_);
        ended_.store(true, std::memory_order_release);
      }
      if (rank_ == 0 && n.what != notice::kind::done) send_all(n, text);
    }
    changed_.notify_all();
    if (answer) broadcast({notice::kind::counts, rank_, begun_.load()}, {});
    if (call) call();
  }

  const int rank_;
  const int size_;
  const std::atomic<std::uint64_t>& begun_;
  sys::socket listener_;
  std::vector<connection> connections_;  // rank 0: to all others, by rank; other ranks: to rank 0
  sys::thread service_;
  static constexpr xla::detail::fork_functions at_fork_functions_{[](void*) {},
                                                                  &liveness::after_fork};
  // Never destroyed, as other threads may still use them.
  xla::detail::fork_hooks* const at_fork_ =
      new xla::detail::fork_hooks{xla::detail::fork_order::functions, this, &at_fork_functions_};
  mutable sys::mutex lock_;
  sys::condition_variable changed_;
  std::atomic<bool> ended_{false};
  ending ending_;
  std::vector<std::uint64_t> left_;    // exchanges of ranks that have left
  std::vector<bool> done_;             // ranks that need no connection any more
  std::vector<std::uint64_t> counts_;  // their answers
  std::vector<std::deque<int>> gathered_;  // results of all_gather(), by rank, not yet returned
  std::function<void()> at_end_;
  clock::time_point stop_by_ = clock::time_point::max();
};

}  // namespace xla::mpi::detail
