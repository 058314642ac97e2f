// SPDX-License-Identifier: Apache-2.0
// Worlds of replicas, for all translation units of a program.
#define XLA_RUNTIME_SOURCE
#include <xla/run/world/launch.hpp>
#include <xla/run/world/launch_threads.hpp>

template double xla::detail::replica_timeout<void>();
template std::unique_ptr<xla::detail::world> xla::detail::open_world<void>(int, double);
template void xla::kernel::sum_replicas<void>(xla::reduce_type, xla::dtype, const void* const*, int,
                                              std::int64_t, void*);
template void xla::run_replicas<void>(std::span<const xla::Device>, xla::ReplicaBody);
