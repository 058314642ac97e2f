// SPDX-License-Identifier: Apache-2.0
#pragma once

// Deals the batches of one loader out to the replicas of a world, loaded ahead on a thread.
// DataParallel uses it; DistributedSampler (data/) deals out samples instead, with a loader per
// replica.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/base/system/condition_variable.hpp"
#include "xla/base/system/joining_thread.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/data/loader.hpp"
#include "xla/op/collectives.hpp"
#include "xla/parallel/launch.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla::parallel {

template <class Loader>
using batch_of = std::remove_cvref_t<decltype(*std::begin(std::declval<Loader&>()))>;

namespace detail {

/// Iterates over a loader once, on a thread of its own, and deals the batches out in rounds. A
/// round has a batch for each replica of the world, the i-th for replica i. Batches for this
/// process's devices are loaded ahead. A last round that the loader cannot fill is dropped.
template <class Loader>
class Distributor {
  static_assert(
      !requires { requires Loader::reads_part; },
      "xla::parallel::DataParallel: deals the batches of a loader out by itself; one "
      "with a DistributedSampler is for xla::launch");
  using Batch = batch_of<Loader>;
  using Round = std::vector<std::unique_ptr<Batch>>;

 public:
  Distributor(Loader& loader, const std::vector<Device>& devices)
      : loader_(loader), devices_(devices), hands_(devices.size()) {}
  ~Distributor() {
    for (std::size_t index = 0; index < hands_.size(); ++index) leave(index);
  }
  Distributor(const Distributor&) = delete;
  Distributor& operator=(const Distributor&) = delete;

  const Loader& loader() const { return loader_; }

  /// Starts the thread, once. `first` is the ordinal of the first of these devices, `world` the
  /// number of replicas.
  void begin(std::int64_t first, std::int64_t world) {
    const std::lock_guard hold(lock_);
    if (thread_.joinable()) return;
    const data::BatchShare share{first, std::ssize(devices_), world};
    thread_ = sys::joining_thread([this, share] { work(share); });
  }

  /// The next batch of a device; nullptr after the last one. An exception of the loader is rethrown
  /// here.
  std::unique_ptr<Batch> take(std::size_t index) {
    sys::unique_lock hold(lock_);
    auto& mine = hands_[index].batches;
    changed_.wait(hold, [&] { return !mine.empty() || done_; });
    if (mine.empty()) {
      if (failure_) std::rethrow_exception(failure_);
      return nullptr;
    }
    auto batch = std::move(mine.front());
    mine.pop_front();
    changed_.notify_all();
    return batch;
  }

  /// Says that a device takes no further batches; the thread then does not wait for it.
  void leave(std::size_t index) {
    const std::lock_guard hold(lock_);
    hands_[index].left = true;
    hands_[index].batches.clear();
    changed_.notify_all();
  }

  /// The number of batches in the dropped round. Waits for the thread's end.
  std::int64_t dropped() {
    if (thread_.joinable()) thread_.join();
    return dropped_;
  }

 private:
  /// The queue of a device: batches that are loaded and not yet taken. left: the device takes no
  /// more.
  struct hand {
    std::deque<std::unique_ptr<Batch>> batches;
    bool left = false;
  };
  static constexpr std::size_t ahead = 2;  // one batch to be taken next, and one being made

  void work(const data::BatchShare& share) noexcept {
    try {
      use_all_cores();             // a device's thread has started this one
      const eager_mode_guard now;  // a batch is there when it is distributed
      distribute(share);
    } catch (...) {
      failure_ = std::current_exception();
    }
    const std::lock_guard hold(lock_);
    done_ = true;
    changed_.notify_all();
  }

  void distribute(const data::BatchShare& share) {
    Round round;
    if constexpr (requires { loader_.begin(share); }) {
      auto i = loader_.begin(share);
      dropped_ = i.left_out();
      for (; i != loader_.end(); ++i) {
        keep(round, *i);
        if (std::ssize(round) == share.count && !hand_out(round)) return;
      }
    } else {
      std::int64_t at = 0;
      for (auto&& batch : loader_) {
        const auto replica = at++ % share.of;
        if (replica >= share.first && replica < share.first + share.count)
          keep(round, std::forward<decltype(batch)>(batch));
        if (replica + 1 == share.of && !hand_out(round)) return;
      }
      dropped_ = at % share.of;
    }
  }
  template <class B>
  void keep(Round& round, B&& batch) const {
    round.push_back(std::make_unique<Batch>(std::forward<B>(batch)));
    move_to(*round.back(), devices_[round.size() - 1]);
  }
  /// Queues a round, waiting for room; false when no device takes further batches.
  bool hand_out(Round& round) {
    for (std::size_t index = 0; index < round.size(); ++index) {
      hand& to = hands_[index];
      sys::unique_lock hold(lock_);
      changed_.wait(hold, [&] { return to.left || to.batches.size() < ahead; });
      if (!to.left) to.batches.push_back(std::move(round[index]));
      changed_.notify_all();
    }
    round.clear();
    const std::lock_guard hold(lock_);
    return std::any_of(hands_.begin(), hands_.end(), [](const hand& h) { return !h.left; });
  }

  Loader& loader_;
  const std::vector<Device>& devices_;
  sys::mutex lock_;
  sys::condition_variable changed_;
  std::vector<hand> hands_;
  std::exception_ptr failure_;
  std::int64_t dropped_ = 0;
  bool done_ = false;
  sys::joining_thread thread_;  // the last member: it ends first
};

}  // namespace detail

/// The batches of one device in one pass over a loader, on its device and loaded ahead: replica i
/// of n gets batches i, i + n, i + 2n, ... A round of n that the loader cannot fill is dropped, so
/// that all get equally many. It can be iterated once.
template <class Loader>
class DeviceLoader {
 public:
  using value_type = batch_of<Loader>;

  DeviceLoader(detail::Distributor<Loader>& distributor, std::size_t index)
      : distributor_(distributor), index_(index) {}
  ~DeviceLoader() { distributor_.leave(index_); }
  DeviceLoader(const DeviceLoader&) = delete;
  DeviceLoader& operator=(const DeviceLoader&) = delete;

  /// An input iterator; it holds the current batch.
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = DeviceLoader::value_type;

    explicit iterator(DeviceLoader& all) : all_(&all) { ++*this; }
    value_type& operator*() const { return *batch_; }
    iterator& operator++() {
      batch_ = all_->distributor_.take(all_->index_);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) { return !i.batch_; }

   private:
    DeviceLoader* all_;
    std::unique_ptr<value_type> batch_;
  };

  iterator begin() {
    distributor_.begin(global_ordinal() - static_cast<std::int64_t>(index_), world_size());
    return iterator{*this};
  }
  std::default_sentinel_t end() const { return {}; }

  /// How many batches of an epoch are this device's.
  std::int64_t size() const
    requires requires(const Loader& loader) {
      { loader.size() } -> std::convertible_to<std::int64_t>;
    }
  {
    return static_cast<std::int64_t>(distributor_.loader().size()) / world_size();
  }

 private:
  detail::Distributor<Loader>& distributor_;
  std::size_t index_;
};

}  // namespace xla::parallel
