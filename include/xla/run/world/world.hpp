// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a world: all replicas of it that live in this process. open_world.hpp makes one;
// thread_world.hpp and ext/mpi_world.hpp implement it.

#include <exception>
#include <memory>

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

}  // namespace xla::detail
