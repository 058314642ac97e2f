// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a world: all replicas of it that live in this process, and which of them this
// thread is. launch.hpp makes a world; thread_world.hpp and ext/mpi_world.hpp implement it.

#include <exception>
#include <memory>

#include "xla/run/state/context.hpp"
#include "xla/run/world/replica.hpp"

namespace xla::detail {

/// The replicas of a world that live in this process. Outlives the threads that use them.
class world {
 public:
  world() = default;
  world(const world&) = delete;
  virtual ~world() = default;

  virtual int size() const noexcept = 0;  ///< of this process
  virtual replica& at(int i) = 0;
  /// The replica_error that ended it; none while it goes on.
  virtual std::exception_ptr error() const noexcept = 0;
};

/// Makes worlds in which other processes have replicas, too.
class world_maker {
 public:
  virtual std::unique_ptr<world> open(int replicas, double timeout) = 0;

 protected:
  ~world_maker() = default;
};

/// This thread's replica: its interface to the world of its device; nullptr: the device is alone.
inline replica* replica_now() noexcept {
  return this_thread.device->replica.load(std::memory_order_acquire);
}
inline int world_now() noexcept {
  const auto* const r = replica_now();
  return r ? r->world_size : 1;
}

}  // namespace xla::detail
