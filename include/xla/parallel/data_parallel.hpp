// SPDX-License-Identifier: Apache-2.0
#pragma once

// DataParallel: trains one model on several devices of this process, by the names of torch_xla. It
// builds on launch() and optimizer_step(), which also serve programs of many processes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/parallel/context.hpp"
#include "xla/parallel/device_list.hpp"
#include "xla/parallel/device_loader.hpp"
#include "xla/parallel/launch.hpp"
#include "xla/parallel/rendezvous.hpp"
#include "xla/run/state/mode.hpp"

namespace xla::parallel {

/// Trains a model on several devices, like torch_xla's DataParallel: each device has a copy of it
/// and its own batches, and `optimizer_step` keeps the copies equal.
///   xla::parallel::DataParallel model_parallel(Mnist{}, xla::devices());
///   model_parallel(train_loop_fn, train_loader);
/// calls train_loop_fn(model, loader, device, context) for every device, each on a thread of its
/// own: with its copy of the model, the loader of its batches (DeviceLoader), and a Context, which
/// lives as long as this does.
template <class Model>
class DataParallel {
 public:
  /// Copies of a model on all devices of the process.
  explicit DataParallel(const Model& network) : DataParallel(network, devices()) {}
  /// On these devices: {i} is one of them. With none, {}, the loop function runs without XLA:
  /// eagerly, on the calling thread. Throws `xla::error` for a device that does not exist or is
  /// repeated.
  DataParallel(const Model& network, const DeviceList& device_ids)
      : devices_(device_ids.list()), native_(devices_.empty()) {
    if (native_) devices_.push_back(device());
    for (const Device& on : devices_) {
      replicas_.push_back(std::make_unique<replica>(network, on));
      move_to(replicas_.back()->model, on);
    }
    finish_pending();
  }

  /// One pass of the loop function over the loader's batches, on each device. Returns its results,
  /// one for each device, or nothing. If it throws on one of them, all end, and this rethrows the
  /// exception with the replica's ordinal. The next pass begins with copies of the first device's
  /// parameters and buffers, which may be in the middle of a step (see `launch`).
  template <class LoopFn, class Loader>
  auto operator()(LoopFn&& loop_fn, Loader& loader) {
    using Result =
        std::invoke_result_t<LoopFn&, Model&, DeviceLoader<Loader>&, const Device&, Context&>;
    detail::Distributor<Loader> distributor{loader, devices_};
    const auto run = [&](std::size_t index) -> Result {
      replica& mine = *replicas_[index];
      DeviceLoader<Loader> batches{distributor, index};
      return loop_fn(mine.model, batches, mine.context.device(), mine.context);
    };
    const bool equal = std::exchange(equal_, false);  // until all devices have finished
    const auto finish = [&] {
      equal_ = true;
      dropped_ = distributor.dropped();
    };
    const auto all = [&] {
      if (native_) {
        const eager_mode_guard eager;
        return run_here<Result>(run);
      }
      return on_devices(devices_, [&](std::size_t index) -> Result {
        if (!equal) broadcast_master_param(replicas_[index]->model);
        return run(index);
      });
    };
    if constexpr (std::is_void_v<Result>) {
      all();
      finish();
    } else {
      auto results = all();
      finish();
      return results;
    }
  }

  /// The model of a device of the list. After each step all are equal, except for buffers such as
  /// running statistics, where the first device's are used.
  Model& model(std::size_t index = 0) { return replicas_.at(index)->model; }
  const Model& model(std::size_t index = 0) const { return replicas_.at(index)->model; }
  const std::vector<Device>& device_ids() const { return devices_; }
  /// Batches of the last pass that did not fill a round of all devices, and were dropped.
  std::int64_t dropped() const { return dropped_; }

 private:
  struct replica {
    Model model;
    Context context;  // may refer to the model
    replica(const Model& network, const Device& on) : model(network), context(on) {}
  };
  template <class Result, class Run>
  static auto run_here(const Run& run) {
    if constexpr (std::is_void_v<Result>) {
      run(0);
    } else {
      std::vector<Result> results;
      results.push_back(run(0));
      return results;
    }
  }

  std::vector<Device> devices_;
  bool native_, equal_ = false;
  std::vector<std::unique_ptr<replica>> replicas_;
  std::int64_t dropped_ = 0;
};

}  // namespace xla::parallel
