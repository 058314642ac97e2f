// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects the headers of parallel/, for programs that train by several replicas. Not in xla.hpp;
// MPI is in ext/mpi.hpp.

/// Training by several replicas: the devices of a process, or of several (ext/mpi.hpp).
namespace xla::parallel {}

#include "xla/op/mark_sharding.hpp"
#include "xla/optim/zero_redundancy.hpp"
#include "xla/parallel/check_replicas.hpp"
#include "xla/parallel/data_parallel.hpp"
#include "xla/parallel/launch.hpp"
#include "xla/parallel/optimizer_step.hpp"
#include "xla/parallel/rendezvous.hpp"
