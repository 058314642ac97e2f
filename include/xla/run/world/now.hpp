// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which replica this thread is, and of how many. Graphs and executables that differ with the number
// of replicas ask; the public functions are in op/collectives.hpp.

#include "xla/run/state/context.hpp"
#include "xla/run/world/replica.hpp"

namespace xla::detail {

/// The end of the world that this thread's device has; none: it is alone.
inline replica* replica_now() noexcept {
  return this_thread.device->replica.load(std::memory_order_acquire);
}
inline int world_now() noexcept {
  const auto* const r = replica_now();
  return r ? r->world_size : 1;
}

}  // namespace xla::detail
