// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a world of replicas. Launches call it; a program with ext/mpi.hpp makes worlds that span
// processes, all others worlds of threads.

#include <memory>

#include "xla/base/instance.hpp"
#include "xla/run/world/world.hpp"

namespace xla::detail {

/// How many seconds a replica waits for others before it gives up: XLA_REPLICA_TIMEOUT, or half an
/// hour.
template <class = void>
double replica_timeout();

/// A world with so many replicas in this process: threads that share memory, unless the_process has
/// another maker. timeout: in seconds.
template <class = void>
std::unique_ptr<world> open_world(int replicas, double timeout = replica_timeout());

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/world/thread_world.hpp"
#endif
