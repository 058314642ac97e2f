// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a world: its replicas in this process, and the one of this thread. launch.hpp
// makes a world; thread_world.hpp and ext/mpi_world.hpp implement it.

#include <exception>
#include <memory>

#include "xla/run/state/context.hpp"
#include "xla/run/world/replica.hpp"

namespace xla::detail {

/// The replicas of a world in this process. It outlives the threads that use it.
class world {
 public:
  world() = default;
  world(const world&) = delete;
  virtual ~world() = default;

  virtual int size() const noexcept = 0;  ///< of this process
  virtual replica& at(int i) = 0;
  /// The replica_error that ended it; none while it is running.
  virtual std::exception_ptr error() const noexcept = 0;
};

/// Makes worlds that have replicas in other processes, too.
class world_maker {
 public:
  virtual std::unique_ptr<world> open(int replicas, double timeout) = 0;

 protected:
  ~world_maker() = default;
};

/// This thread's replica: its interface to the world of its device; nullptr if the device is alone.
inline replica* replica_now() noexcept {
  return this_thread.device->replica.load(std::memory_order_acquire);
}
inline int world_now() noexcept {
  const auto* const r = replica_now();
  return r ? r->world_size : 1;
}

}  // namespace xla::detail
