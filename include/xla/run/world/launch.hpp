// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs one body on several devices, a thread each, as replicas of one world. parallel/launch.hpp is
// the public function; launch_threads.hpp defines what this declares.

#include <cstddef>
#include <span>

#include "xla/base/instance.hpp"
#include "xla/tensor/device.hpp"

namespace xla {

/// What each of several replicas does: run(self, place) for the device at that place of a list, and
/// then finish(), which computes what is pending; also where run() has thrown.
struct ReplicaBody {
  void (*run)(void* self, std::size_t place);
  void (*finish)();
  void* self;
};

/// Runs the body once for each of these devices, each time on a thread of its own that works on the
/// device, in the mode of this thread; one alone runs on this thread. They are the replicas of one
/// world, together with those of other processes (ext/mpi.hpp), until all have come to the end.
/// What one of them throws ends all, at their next exchange, and is thrown here as a replica_error;
/// in a world of one it is thrown as it is. Throws `xla::error` for a device that is at work in
/// another call.
template <class = void>
void run_replicas(std::span<const Device> devices, ReplicaBody body);

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/world/launch_threads.hpp"
#endif
