// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a world of replicas, and runs one body on several devices, one thread each, as replicas of
// one world. parallel/launch.hpp has the public function; launch_threads.hpp and thread_world.hpp
// define what this declares. A program with ext/mpi.hpp makes worlds that span processes.

#include <cstddef>
#include <memory>
#include <span>

#include "xla/base/instance.hpp"
#include "xla/run/world/world.hpp"
#include "xla/tensor/device.hpp"

namespace xla::detail {

/// The number of seconds that a replica waits for others: XLA_REPLICA_TIMEOUT, or half an hour.
template <class = void>
double replica_timeout();

/// A world with this many replicas in this process: threads that share memory, unless the_process
/// has another maker. timeout: in seconds.
template <class = void>
std::unique_ptr<world> open_world(int replicas, double timeout = replica_timeout());

}  // namespace xla::detail

namespace xla {

/// The work of each of several replicas: run(self, index) for the device at that index of a list,
/// and then finish(), which computes pending ops, even if run() has thrown.
struct ReplicaBody {
  void (*run)(void* self, std::size_t index);
  void (*finish)();
  void* self;
};

/// Runs the body once for each of these devices, each time on a thread of its own that works on the
/// device, in the mode of this thread; a single device uses this thread. They are the replicas of
/// one world, together with those of other processes (ext/mpi.hpp), until all have finished. An
/// exception of one of them ends all at their next exchange, and is rethrown here as a
/// replica_error, or unchanged in a world of one. Throws `xla::error` for a device that is used by
/// another call.
template <class = void>
void run_replicas(std::span<const Device> devices, ReplicaBody body);

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/world/launch_threads.hpp"
#include "xla/run/world/thread_world.hpp"
#endif
