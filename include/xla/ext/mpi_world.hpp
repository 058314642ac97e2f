// SPDX-License-Identifier: Apache-2.0
#pragma once

// The transport between replicas of many processes: implements run/world/world.hpp by
// mpi_channel.hpp. mpi.hpp makes one for each launch.

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/system/mutex.hpp"
#include "xla/ext/mpi_channel.hpp"
#include "xla/run/world/world.hpp"

namespace xla::mpi::detail {

/// The replicas of this process, of a world of many.
class rank_world final : public world {
 public:
  rank_world(channel& c, process_map all, double timeout) : channel_(c), timeout_(timeout) {
    state_->all = std::move(all);
    const int first = state_->all.at(state_->all.rank);
    for (int i = 0; i < size(); ++i)
      ends_.push_back(std::make_unique<end>(*this, first + i, state_->all.world_size()));
  }
  ~rank_world() override {
    if (!state_->rendezvous_queue.empty())
      channel_.keep(std::move(state_));  // it has ended in the middle of a step
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
      world_.channel_.drive();
      world_.channel_.call_helper();
      return next_++;
    }
    void run(const exchange& e) override {
      world_.come(own(), next_, e);
      world_.await(own(), next_++);
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
  struct state {
    process_map all{0, {}};
    std::uint64_t first = 1;  // of the tickets that are still in use
    std::deque<std::unique_ptr<rendezvous>> rendezvous_queue, free;
  };

  void come(int own, std::uint64_t ticket, const exchange& e) {
    if (channel_.over()) throw_error(own, nullptr);
    const std::lock_guard hold(lock_);
    rendezvous& m = of_ticket(ticket);
    m.own[static_cast<std::size_t>(own)].keep(e);
    if (++m.come == size()) channel_.add(m);
  }
  /// Under the lock.
  rendezvous& of_ticket(std::uint64_t ticket) {
    state& s = *state_;
    while (ticket - s.first >= s.rendezvous_queue.size()) {
      if (s.free.empty()) s.free.push_back(std::make_unique<rendezvous>());
      s.rendezvous_queue.push_back(std::move(s.free.back()));
      s.free.pop_back();
      rendezvous& m = *s.rendezvous_queue.back();
      m.all = &s.all;
      m.own.resize(static_cast<std::size_t>(size()));
      m.come = m.gone = 0;
      m.number = 0;
      m.done.store(false, std::memory_order_relaxed);
    }
    return *s.rendezvous_queue[static_cast<std::size_t>(ticket - s.first)];
  }

  void await(int own, std::uint64_t ticket) {
    lock_.lock();
    rendezvous& m = of_ticket(ticket);
    lock_.unlock();
    if (!m.done.load(std::memory_order_acquire)) {
      const channel::waiting_guard here(channel_);
      drive_until(own, m);
    }
    leave(m);
  }
  void drive_until(int own, const rendezvous& m) {
    backoff between;
    backoff::clock::duration asked{};  // when the others were last polled
    while (!m.done.load(std::memory_order_acquire)) {
      if (channel_.over()) throw_error(own, &m);
      if (channel_.drive()) {
        between = {};
        asked = {};
      } else if (between.take() && between.waited() - asked > std::chrono::milliseconds(50)) {
        asked = between.waited();
        check_others(own, m, asked);
      }
    }
  }
  void leave(rendezvous& m) {
    const std::lock_guard hold(lock_);
    ++m.gone;
    for (state& s = *state_;
         !s.rendezvous_queue.empty() && s.rendezvous_queue.front()->gone == size(); ++s.first) {
      s.free.push_back(std::move(s.rendezvous_queue.front()));
      s.rendezvous_queue.pop_front();
    }
  }

  // Reports the failure.

  [[gnu::cold]] void check_others(int own, const rendezvous& m,
                                  std::chrono::duration<double> waited) {
    sys::unique_lock hold(lock_);
    const auto number = m.number.load();
    const std::string what = about(own, m);
    hold.unlock();
    const int gone = number == 0 ? -1 : channel_.peers.left_before(number);
    if (gone >= 0)
      fail(state_->all.at(gone), "rank " + std::to_string(gone) + " has come to its end, where " +
                                     name(own) + " waits in " + what);
    else if (waited.count() > timeout_)
      if (const std::string others = missing(number);
          !others.empty())  // they may have arrived by now
        fail(ordinal(own),
             "waited " + channel::shown(timeout_) + " s in " + what + ", for " + others);
  }
  [[gnu::cold]] std::string missing(std::uint64_t number) const {
    if (number == 0) return "a replica of its own process";
    const std::string ranks = channel_.peers.lagging(number);
    return ranks.empty() ? ranks : "rank " + ranks;
  }
  [[gnu::cold]] void fail(int failed_ordinal, const std::string& why) noexcept {
    abort(failed_ordinal, std::make_exception_ptr(runtime_error(why)));
  }
  [[gnu::cold]] void abort(int failed_ordinal, std::exception_ptr why) noexcept {
    channel_.rest();
    if (channel_.peers.ended()) return;
    try {
      std::rethrow_exception(
          error_of_replica(failed_ordinal, state_->all.world_size(), std::move(why)));
    } catch (const std::exception& e) {
      channel_.end(failed_ordinal, e.what());
    } catch (...) {}
  }
  [[noreturn, gnu::cold]] void throw_error(int own, const rendezvous* m) {
    channel_.rest();
    std::rethrow_exception(error_for(own, m));
  }
  [[gnu::cold]] std::exception_ptr error_for(int own, const rendezvous* m) const noexcept try {
    const auto how = channel_.peers.how_it_ended();
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
  [[gnu::cold]] std::string about(int own, const rendezvous& m) const {
    return describe(summary_of(m.own[static_cast<std::size_t>(own)].what, ordinal(own))) +
           ", exchange " + std::to_string(m.number.load()) + " of its process";
  }
  int ordinal(int own) const { return state_->all.at(state_->all.rank) + own; }
  std::string name(int own) const { return "replica " + std::to_string(ordinal(own)); }

  channel& channel_;
  const double timeout_;
  std::shared_ptr<state> state_ = std::make_shared<state>();
  std::vector<std::unique_ptr<end>> ends_;
  sys::mutex lock_;  // of the queue
};

}  // namespace xla::mpi::detail
