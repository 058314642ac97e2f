// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "xla/ext/mpi_carrier.hpp"
#include "xla/ext/mpi_liveness.hpp"
#include "xla/kernel/pool.hpp"
#include "xla/run/world/world.hpp"

namespace xla::mpi::detail {

/// An exchange as the replicas of a process start it, one after another, and wait for it.
struct meeting {
  const roster* all = nullptr;
  std::vector<started> own;
  int come = 0, gone = 0;
  std::atomic<std::uint64_t> number{0};  ///< among those of the process, from 1
  std::atomic<bool> done{false};
};

/// What this process exchanges with the others: one exchange after another, in the order in which
/// its replicas have all come to them. Who waits helps it on; while all compute, a thread does.
class channel {
 private:
  std::atomic<std::uint64_t> begun_{0}, done_{0};  // exchanges that all of this process came to

 public:
  liveness life;

  /// alone: MPI lets a thread of this object help.
  channel(MPI_Comm comm, int rank, int ranks, bool fast, bool alone)
      : life(rank, ranks, begun_), carrier_(comm, fast), alone_(alone) {
    if (alone_) thread_ = std::thread([this] { help(); });
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel() { stop(); }

  bool progresses_alone() const noexcept { return alone_; }

  /// All replicas of this process have come.
  void add(meeting& m) {
    {
      const std::lock_guard hold(lock_);
      ready_.push_back(&m);
      m.number = begun_.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    if (alone_) work_.notify_one();
    else drive();
  }
  /// Goes on with what is under way; false when it can do nothing now.
  bool drive() noexcept {
    const std::unique_lock hold(driving_, std::try_to_lock);
    if (!hold.owns_lock() || over()) return false;
    try {
      bool moved = false;
      for (; (now_ || take_next()) && carrier_.advance(elements_, over_); moved = true) {
        done_.fetch_add(1, std::memory_order_relaxed);
        std::exchange(now_, nullptr)->done.store(true, std::memory_order_release);
      }
      return moved;
    } catch (const replica_error& e) {
      end(e.ordinal(), e.what());
    } catch (const std::exception& e) {
      if (life.ended_within(std::chrono::seconds(1))) return false;  // MPI misses who has died
      const int own = now_->all->at(now_->all->rank);
      end(own, replica_name(own, now_->all->world_size()) + ": " + e.what());
    }
    return false;
  }

  /// Ends the world for all processes, unless something has.
  void end(int ordinal, const std::string& why) noexcept {
    rest();
    try {
      life.end(ordinal, why);
    } catch (...) {  // there is no memory to say it: this process will be missed when it is gone
    }
  }
  bool over() const noexcept { return over_.load(std::memory_order_acquire) || life.ended(); }
  /// When it returns, no element is touched any more.
  void rest() noexcept {
    over_.store(true, std::memory_order_release);
    const std::lock_guard hold(elements_);
  }
  /// What the processes tell here, by rank. Throws replica_error when not all do.
  std::vector<int> tell(int value, double timeout) {
    std::vector<int> all;
    const int missing = life.tell(value, timeout, all);
    if (missing < 0) return all;
    if (!life.ended())
      end(missing, "rank " + std::to_string(missing) + " has not come to xla::launch, or to the " +
                       "world that others begin, in " + shown(timeout) + " s");
    const auto how = life.how_it_ended();
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

  /// Says that this process has come to its end; false when the world has ended before.
  bool leave() {
    const bool together = !over() && life.leave();
    stop();
    return together;
  }
  /// Keeps what MPI or another thread may still look at.
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
    carrier_.begin(*now_->all, now_->own);
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
  /// The thread: MPI tells nobody when something has come.
  void help() {
    const auto busy = [&] { return begun_ != done_ && !over(); };
    std::unique_lock hold(lock_);
    while (!stop_) {
      work_.wait(hold, [&] { return stop_ || busy(); });
      hold.unlock();
      if (!drive()) std::this_thread::sleep_for(std::chrono::microseconds(50));
      hold.lock();
    }
  }

  carrier carrier_;
  const bool alone_;
  std::mutex driving_;   // held by who helps
  std::mutex elements_;  // held while they are read and written
  std::atomic<bool> over_{false};
  meeting* now_ = nullptr;  // under way
  std::mutex lock_;         // of what follows
  std::condition_variable work_;
  std::deque<meeting*> ready_;
  std::vector<std::shared_ptr<void>> remains_;
  bool stop_ = false;
  std::thread thread_;
};

/// The replicas of this process, of a world of many.
class rank_world final : public world {
 public:
  rank_world(channel& c, roster all, double timeout) : channel_(c), timeout_(timeout) {
    state_->all = std::move(all);
    const int first = state_->all.at(state_->all.rank);
    for (int i = 0; i < size(); ++i)
      ends_.push_back(std::make_unique<end>(*this, first + i, state_->all.world_size()));
  }
  ~rank_world() override {
    if (!state_->meetings.empty()) channel_.keep(std::move(state_));  // it has ended in mid-step
  }
  int size() const noexcept override { return state_->all.own(); }
  replica& at(int i) override { return *ends_[static_cast<std::size_t>(i)]; }
  std::exception_ptr error() const noexcept override {
    return channel_.over() ? error_for(0, nullptr) : nullptr;
  }

 private:
  class end final : public replica {
   public:
    end(rank_world& of, int number, int size) : replica(number, size), world_(of) {}
    std::uint64_t start(const exchange& e) override {
      world_.come(own(), next_, e);
      return next_++;
    }
    void wait(std::uint64_t ticket) override { world_.await(own(), ticket); }
    void abort(std::exception_ptr why) noexcept override { world_.abort(ordinal, why); }
    bool progresses_alone() const noexcept override { return world_.channel_.progresses_alone(); }
    void progress() noexcept override { world_.channel_.drive(); }

   private:
    int own() const { return ordinal - world_.state_->all.at(world_.state_->all.rank); }
    rank_world& world_;
    std::uint64_t next_ = 1;
  };
  using clock = std::chrono::steady_clock;
  struct state {
    roster all{0, {}};
    std::uint64_t first = 1;  // of the tickets that somebody may still use
    std::deque<std::unique_ptr<meeting>> meetings, free;
  };

  void come(int own, std::uint64_t ticket, const exchange& e) {
    if (channel_.over()) throw_error(own, nullptr);
    const std::lock_guard hold(lock_);
    meeting& m = of_ticket(ticket);
    m.own[static_cast<std::size_t>(own)].keep(e);
    if (++m.come == size()) channel_.add(m);
  }
  /// Under the lock.
  meeting& of_ticket(std::uint64_t ticket) {
    state& s = *state_;
    while (ticket - s.first >= s.meetings.size()) {
      if (s.free.empty()) s.free.push_back(std::make_unique<meeting>());
      s.meetings.push_back(std::move(s.free.back()));
      s.free.pop_back();
      meeting& m = *s.meetings.back();
      m.all = &s.all;
      m.own.resize(static_cast<std::size_t>(size()));
      m.come = m.gone = 0;
      m.number = 0;
      m.done.store(false, std::memory_order_relaxed);
    }
    return *s.meetings[static_cast<std::size_t>(ticket - s.first)];
  }

  /// A little while awake, as the others are seldom far behind, then asleep in between.
  void await(int own, std::uint64_t ticket) {
    lock_.lock();
    meeting& m = of_ticket(ticket);
    lock_.unlock();
    kernel::detail::patience left;
    bool tired = false;
    clock::time_point since;
    for (int rounds = 0; !m.done.load(std::memory_order_acquire);) {
      if (channel_.over()) throw_error(own, &m);
      if (channel_.drive()) continue;
      if (!tired && left.spent()) {
        tired = true;
        since = clock::now();
      } else if (tired) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (++rounds % 1024 == 0) check_others(own, m, since);
      } else if (++rounds % 64 == 0) {
        std::this_thread::yield();  // they may need this very core
      }
    }
    leave(m);
  }
  void leave(meeting& m) {
    const std::lock_guard hold(lock_);
    ++m.gone;
    for (state& s = *state_; !s.meetings.empty() && s.meetings.front()->gone == size(); ++s.first) {
      s.free.push_back(std::move(s.meetings.front()));
      s.meetings.pop_front();
    }
  }

  // What goes wrong.

  [[gnu::cold]] void check_others(int own, const meeting& m, clock::time_point since) {
    const std::chrono::duration<double> waited = clock::now() - since;
    std::unique_lock hold(lock_);
    const auto number = m.number.load();
    const std::string what = about(own, m);
    hold.unlock();
    const int gone = number == 0 ? -1 : channel_.life.left_before(number);
    if (gone >= 0)
      fail(state_->all.at(gone), "rank " + std::to_string(gone) + " has come to its end, where " +
                                     name(own) + " waits in " + what);
    else if (waited.count() > timeout_)
      fail(ordinal(own), "waited " + channel::shown(timeout_) + " s in " + what + ", for " +
                             (number == 0 ? "a replica of its own process"
                                          : "rank " + channel_.life.behind(number)));
  }
  [[gnu::cold]] void fail(int culprit, const std::string& why) noexcept {
    abort(culprit, std::make_exception_ptr(runtime_error(why)));
  }
  [[gnu::cold]] void abort(int culprit, std::exception_ptr why) noexcept {
    channel_.rest();
    if (channel_.life.ended()) return;
    try {
      std::rethrow_exception(error_of_replica(culprit, state_->all.world_size(), std::move(why)));
    } catch (const std::exception& e) {
      channel_.end(culprit, e.what());
    } catch (...) {}
  }
  [[noreturn, gnu::cold]] void throw_error(int own, const meeting* m) {
    channel_.rest();
    std::rethrow_exception(error_for(own, m));
  }
  [[gnu::cold]] std::exception_ptr error_for(int own, const meeting* m) const noexcept try {
    const auto how = channel_.life.how_it_ended();
    if (how.ordinal >= 0)
      return std::make_exception_ptr(replica_error(how.why, how.ordinal, nullptr));
    const int first = state_->all.at(how.rank);
    std::string why =
        replica_name(first, state_->all.world_size()) + ": " + channel::died(how.rank);
    if (m) why += "; " + name(own) + " waited for it in " + about(own, *m);
    return std::make_exception_ptr(replica_error(why, first, nullptr));
  } catch (...) {
    return std::current_exception();
  }
  [[gnu::cold]] std::string about(int own, const meeting& m) const {
    return describe(summary_of(m.own[static_cast<std::size_t>(own)].what)) + ", exchange " +
           std::to_string(m.number.load()) + " of its process";
  }
  int ordinal(int own) const { return state_->all.at(state_->all.rank) + own; }
  std::string name(int own) const { return "replica " + std::to_string(ordinal(own)); }

  channel& channel_;
  const double timeout_;
  std::shared_ptr<state> state_ = std::make_shared<state>();
  std::vector<std::unique_ptr<end>> ends_;
  std::mutex lock_;  // of the meetings
};

}  // namespace xla::mpi::detail
