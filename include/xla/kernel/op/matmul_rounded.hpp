// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/kernel/gemm/product_bfloat16.hpp"
#include "xla/kernel/op/matmul_cached.hpp"
#include "xla/kernel/op/matmul_products.hpp"

// The kernel of op::matmul in autocast; gemm/rounded_kernels.hpp makes matmul.hpp call it.

namespace xla::kernel::detail {

/// See rounded_matmul; T is float.
template <class T>
void run_rounded_matmul(const ::xla::detail::kernel_call& call,
                        ::xla::detail::kernel_choice* choice) {
  using ::xla::detail::run_products;
  if ((choice || call.keeper) && multiply_cached<T>(call, choice)) return;
  if (choice) return;
  const auto a = call.attributes<op::matmul>();
  if (a.half_a && a.half_b) run_products(call, &gemm_bfloat16<bfloat16, bfloat16>);
  else if (a.half_a) run_products(call, &gemm_bfloat16<bfloat16, T>);
  else if (a.half_b) run_products(call, &gemm_bfloat16<T, bfloat16>);
  else run_products(call, &gemm_bfloat16<T, T>);
}

}  // namespace xla::kernel::detail
