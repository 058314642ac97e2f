// SPDX-License-Identifier: Apache-2.0
#pragma once

// The threads behind launch.hpp: they are made for one launch, work on one device each, and pass on
// the first error. Threads of kernels are in kernel/threads/.

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/caller.hpp"
#include "xla/base/dependent.hpp"
#include "xla/base/error.hpp"
#include "xla/base/system/joining_thread.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/base/text.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/state/devices.hpp"
#include "xla/run/world/launch.hpp"

namespace xla {
namespace detail {

/// The devices of a launch, on which no other launch may run at the same time. The caller gets the
/// error before any replica begins; within another launch the caller is the replica that called.
class taken_devices {
 public:
  explicit taken_devices(std::span<const Device> devices) : all_(devices) {
    for (; count_ < all_.size(); ++count_)
      if (device_of(all_[count_].index).launched.exchange(true)) {
        give_back();
        throw runtime_error(join({"xla::launch: device ", std::to_string(all_[count_].index),
                                  " is used by another launch: nested or concurrent launches need "
                                  "devices of their own"}));
      }
  }
  ~taken_devices() { give_back(); }
  taken_devices(const taken_devices&) = delete;
  taken_devices& operator=(const taken_devices&) = delete;

 private:
  void give_back() noexcept {
    for (std::size_t i = 0; i < count_; ++i) device_of(all_[i].index).launched = false;
  }

  std::span<const Device> all_;
  std::size_t count_ = 0;
};

/// A device's interface to the world, within a scope.
class replica_scope {
 public:
  replica_scope(device_context& device, replica* end)
      : device_(device), before_(device.replica.exchange(end)) {
    device.take_random_stream(end ? end->ordinal : -1);
  }
  ~replica_scope() {
    device_.replica = before_;
    device_.take_random_stream(random_stream_);
  }
  replica_scope(const replica_scope&) = delete;
  replica_scope& operator=(const replica_scope&) = delete;

 private:
  device_context& device_;
  const int random_stream_ = device_.random_stream();
  replica* const before_;
};

/// The whole run of one replica among several, on this thread.
template <class In>
[[gnu::cold]] void run_replica(dependent<In, replica>& self, const Device& device, ReplicaBody body,
                               std::size_t index) noexcept {
  try {
    const basic_device_scope<In> there{device_of(device.index)};
    const replica_scope member{*this_thread.device, &self};
    try {
      body.run(body.self, index);
      body.finish();
      self.run(
          {.what = exchange::kind::barrier});  // a replica that arrives too early gets an error
    } catch (...) {
      self.abort(std::current_exception());
      try {
        body.finish();  // nothing may wait any longer for a destroyed world
      } catch (...) {
        // The first error is the one to report.
      }
    }
  } catch (...) {
    self.abort(std::current_exception());
  }
}

/// Each on a thread of its own, in the mode of this one.
template <class In>
[[gnu::cold]] void run_on_threads(dependent<In, world>& all, std::span<const Device> devices,
                                  ReplicaBody body) {
  const auto own = this_thread.own;
  const bool grad = this_thread.grad_enabled;
  dependent<In, std::vector<sys::joining_thread>> threads;
  const auto at = [&](std::size_t index) -> auto& { return all.at(static_cast<int>(index)); };
  try {
    for (std::size_t index = 0; index < devices.size(); ++index)
      threads.emplace_back([&, index] {
        this_thread.own = own;
        this_thread.grad_enabled = grad;
        run_replica<In>(at(index), devices[index], body, index);
      });
  } catch (...) {  // no thread can be started
    at(threads.size()).abort(std::current_exception());
  }
}

template <class = void>
[[noreturn, gnu::cold]] void refuse_replicas(std::size_t replicas) {
  throw runtime_error(join({"xla::launch: ", std::to_string(replicas),
                            " replicas need a thread each, and this program is built without "
                            "threads (XLA_NO_THREADS, or a system that has none): launch on one "
                            "device, or in several processes by MPI"}));
}

}  // namespace detail

template <class In>
[[gnu::cold]] void run_replicas(std::span<const Device> devices, ReplicaBody body) {
  using namespace detail;
  for (const Device& device : devices) device.check<In>({"launch", here()});
  if (!sys::has_threads && devices.size() > 1) refuse_replicas<In>(devices.size());
  const taken_devices ours{devices};
  const dependent<In, std::unique_ptr<world>> all =
      open_world<In>(static_cast<int>(devices.size()));
  if (all->at(0).world_size == 1) {
    const basic_device_scope<In> there{device_of(devices[0].index)};
    const replica_scope alone{*this_thread.device, nullptr};
    return body.run(body.self, 0);
  }
  if (devices.size() == 1) run_replica<In>(all->at(0), devices[0], body, 0);
  else run_on_threads<In>(*all, devices, body);
  if (const auto error = all->error()) std::rethrow_exception(error);
}

#if defined(XLA_EXTERN_RUNTIME)  // it is made in cmake/runtime/world.cpp
extern template void run_replicas<void>(std::span<const Device>, ReplicaBody);
#endif

}  // namespace xla
