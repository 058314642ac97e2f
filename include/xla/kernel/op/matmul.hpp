// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of op::matmul. In autocast it calls through the pointer of gemm/rounded_call.hpp, so
// that other programs do not link those kernels.

#include "xla/kernel/call.hpp"
#include "xla/kernel/gemm/product.hpp"
#include "xla/kernel/gemm/product_bfloat16.hpp"
#include "xla/kernel/gemm/rounded_call.hpp"
#include "xla/kernel/op/matmul_products.hpp"
#include "xla/op/matmul.hpp"

namespace xla::detail {

template <class Out, class T>
struct kernel_of<op::matmul, Out, T> {
  static void run(const kernel_call& call) {
    if constexpr (std::is_same_v<T, float>)
      if (call.attributes<op::matmul>().precision == precision::bfloat16)
        return kernel::the_rounded_matmul.load()(call, nullptr);
    if constexpr (std::is_same_v<T, bfloat16>) run_products(call, &kernel::gemm_bfloat16<T, T>);
    else run_products(call, &kernel::gemm<T>);
  }
  static void choose(const kernel_call& of, kernel_choice& out) {
    if constexpr (std::is_same_v<T, float>)
      if (const auto rounded = kernel::the_rounded_matmul.load()) rounded(of, &out);
  }
};

}  // namespace xla::detail
