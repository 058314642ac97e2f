// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of ops in which other replicas take part: each calls the exchange of the device's
// world.

#include <concepts>

#include "xla/kernel/call.hpp"
#include "xla/op/collectives.hpp"

namespace xla::detail {

/// Exchanges elements of a type as an op says, with the other replicas of this thread's device.
/// run/world/run_exchange.hpp defines it.
template <class = void>
void run_exchange(const kernel_call& call, std::uint32_t op, dtype type);

template <std::derived_from<op::collective> Op, class Out, class T>
struct kernel_of<Op, Out, T> {
  static void run(const kernel_call& call) {
    run_exchange<later<T, void>>(call, id_of<Op>, dtype_of<T>);
  }
};

}  // namespace xla::detail
