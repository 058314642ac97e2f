// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "xla/run/world/launch.hpp"

namespace test {

/// A world of threads whose exchanges take the time of a network: from when the last replica has
/// begun one, and the one before it has ended, latency seconds and bytes / bandwidth. It takes no
/// processor time.
class slow_world final : public xla::detail::world {
 public:
  slow_world(int replicas, double latency, double bandwidth)
      : inner_(xla::detail::open_world(replicas)), latency_(latency), bandwidth_(bandwidth) {
    for (int i = 0; i < replicas; ++i)
      all_.push_back(std::make_unique<member>(*this, inner_->at(i)));
  }
  int size() const noexcept override { return inner_->size(); }
  xla::detail::replica& at(int i) override { return *all_[static_cast<std::size_t>(i)]; }
  std::exception_ptr error() const noexcept override { return inner_->error(); }
  /// What the exchanges so far take on the network, in seconds.
  double seconds() const {
    const std::lock_guard hold(lock_);
    double all = 0;
    for (const trip& t : trips_) all += t.takes;
    return all;
  }

 private:
  using clock = std::chrono::steady_clock;
  struct trip {
    clock::time_point begun;  // by the last
    double takes = 0;
  };
  class member final : public xla::detail::replica {
   public:
    member(slow_world& of, xla::detail::replica& inner)
        : replica(inner.ordinal, inner.world_size), world_(of), inner_(inner) {}
    std::uint64_t start(const xla::detail::exchange& e) override {
      const std::uint64_t ticket = inner_.start(e);
      world_.begin(ticket, e);
      return ticket;
    }
    void wait(std::uint64_t ticket) override {
      inner_.wait(ticket);
      std::this_thread::sleep_until(world_.end_of(ticket));
    }
    void abort(std::exception_ptr why) noexcept override { inner_.abort(why); }
    bool progresses_alone() const noexcept override { return true; }

   private:
    slow_world& world_;
    xla::detail::replica& inner_;
  };

  void begin(std::uint64_t ticket, const xla::detail::exchange& e) {
    std::int64_t bytes = 0;
    for (int i = 0; i < e.piece_count; ++i) bytes += e.pieces[i].count * xla::size_of(e.type);
    const std::lock_guard hold(lock_);
    if (trips_.size() < ticket) trips_.resize(static_cast<std::size_t>(ticket));
    trip& t = trips_[static_cast<std::size_t>(ticket - 1)];
    t.begun = std::max(t.begun, clock::now());
    t.takes = latency_ + static_cast<double>(bytes) / bandwidth_;
  }
  // All replicas have begun this one, and so those before it.
  clock::time_point end_of(std::uint64_t ticket) const {
    const std::lock_guard hold(lock_);
    clock::time_point end{};
    for (std::size_t i = 0; i < ticket; ++i)
      end = std::max(end, trips_[i].begun) + std::chrono::duration_cast<clock::duration>(
                                                 std::chrono::duration<double>(trips_[i].takes));
    return end;
  }

  std::unique_ptr<world> inner_;
  double latency_, bandwidth_;
  std::vector<std::unique_ptr<member>> all_;
  mutable std::mutex lock_;
  std::deque<trip> trips_;
};

}  // namespace test
