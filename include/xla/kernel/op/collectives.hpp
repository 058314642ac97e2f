// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of ops between replicas: exchanges, which the world of the device carries out, and
// local_shard, which copies this replica's part and exchanges nothing.

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "xla/kernel/call.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/local_shard.hpp"
#include "xla/tensor/machine.hpp"

namespace xla::detail {

/// Exchanges elements with the other replicas of this thread's device. run/world/run_exchange.hpp
/// defines it.
template <class = void>
void run_exchange(const kernel_call& call, std::uint32_t op, dtype type);

template <std::derived_from<op::collective> Op, class Out, class T>
struct kernel_of<Op, Out, T> {
  static void run(const kernel_call& call) {
    run_exchange<dependent<T, void>>(call, id_of<Op>, dtype_of<T>);
  }
};

template <class Out, class T>
struct kernel_of<op::local_shard, Out, T> {
  static void run(const kernel_call& call) {
    const shape& whole = call.in_shapes[0];
    const int axis = call.attributes<op::local_shard>().axis;
    const std::int64_t part = (*call.out_shape)[axis];
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) outer *= whole[i];
    for (int i = axis + 1; i < whole.rank; ++i) inner *= whole[i];
    const auto first = std::min(machine_of<T>::global_ordinal() * part, whole[axis]);
    const auto length = std::min(part, whole[axis] - first);
    auto* to = static_cast<T*>(call.out);
    for (std::int64_t o = 0; o < outer; ++o) {
      const auto* const from =
          static_cast<const T*>(call.in[0]) + (o * whole[axis] + first) * inner;
      to = std::copy_n(from, length * inner, to);
      to = std::fill_n(to, (part - length) * inner, T{});
    }
  }
};

}  // namespace xla::detail
