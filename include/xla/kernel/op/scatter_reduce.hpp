// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of scatter with a product, maximum or minimum; gather.hpp has the sum.

#include <cstdint>

#include "xla/kernel/op/gather.hpp"
#include "xla/op/scatter_reduce.hpp"

namespace xla::detail {

template <class Op, class T>
void scatter_combined(const kernel_call& call) {
  const T* source = static_cast<const T*>(call.in[2]);
  T* out = copy_input<T>(call);
  for_each_index(call, call.in_shapes[2], [=](std::int64_t to, std::int64_t from) {
    out[to] = Op::combine(out[to], source[from]);
  });
}
template <class Out, class T>
struct kernel_of<op::scatter_prod, Out, T> {
  static void run(const kernel_call& call) { scatter_combined<op::scatter_prod, T>(call); }
};
template <class Out, class T>
struct kernel_of<op::scatter_amax, Out, T> {
  static void run(const kernel_call& call) { scatter_combined<op::scatter_amax, T>(call); }
};
template <class Out, class T>
struct kernel_of<op::scatter_amin, Out, T> {
  static void run(const kernel_call& call) { scatter_combined<op::scatter_amin, T>(call); }
};

}  // namespace xla::detail
