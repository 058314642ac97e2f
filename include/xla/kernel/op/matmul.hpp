// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of op::matmul, and the products of a batch: broadcasts, strides, and whether threads
// share products or each product. In autocast it calls through the pointer of
// gemm/rounded_call.hpp, so that other programs do not link matmul_rounded.hpp's kernels, and for
// matrices that are cached through that of gemm/packed_call.hpp.

#include <algorithm>

#include "xla/kernel/call.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/gemm/packed_call.hpp"
#include "xla/kernel/gemm/product.hpp"
#include "xla/kernel/gemm/product_bfloat16.hpp"
#include "xla/kernel/gemm/rounded_call.hpp"
#include "xla/kernel/memory/matrix_view.hpp"
#include "xla/op/matmul.hpp"

namespace xla::detail {

/// The products of a call, with operands stored as A and B.
template <class Out, class A, class B, class... More>
void run_products(const kernel_call& call,
                  void (*gemm)(std::int64_t, std::int64_t, std::int64_t, kernel::matrix_view<A>,
                               kernel::matrix_view<B>, Out*, std::int64_t, const kernel::epilogue*,
                               More...)) {
  const shape &a = call.in_shapes[0], &c = *call.out_shape;
  const auto of = call.attributes<op::matmul>();
  const bool ta = of.transpose_a, tb = of.transpose_b;
  const std::int64_t m = c[c.rank - 2], n = c[c.rank - 1], k = a[a.rank - (ta ? 2 : 1)];
  if (m == 0 || n == 0) return;
  shape batch = c;
  batch.rank -= 2;
  std::int64_t step[2][max_rank];
  for (int i = 0; i < 2; ++i) {
    shape s = call.in_shapes[i];
    s.rank -= 2;
    kernel::broadcast_strides(s, batch, step[i]);
  }
  const std::int64_t products = count(batch);
  const auto one = [&](std::int64_t p) {
    std::int64_t at_a = 0, at_b = 0, rest = p;
    for (int i = batch.rank - 1; i >= 0; --i) {
      at_a += rest % batch[i] * step[0][i];
      at_b += rest % batch[i] * step[1][i];
      rest /= batch[i];
    }
    const A* pa = static_cast<const A*>(call.in[0]) + at_a * m * k;
    const B* pb = static_cast<const B*>(call.in[1]) + at_b * k * n;
    Out* pc = static_cast<Out*>(call.out) + p * m * n;
    gemm(m, n, k, {pa, ta ? 1 : k, ta ? m : 1}, {pb, tb ? 1 : n, tb ? k : 1}, pc, n, nullptr,
         More(of.of_steps)...);
  };
  // Many products are distributed whole among the threads; of a few, each is divided.
  constexpr std::int64_t chunk_work = 1 << 18;
  const std::int64_t work = std::max<std::int64_t>(m, 4) * n * k;
  const bool whole = products >= 2 * num_threads() || work < 2 * chunk_work;
  const std::int64_t chunk = whole ? chunk_work / (work + 1) + 1 : products;
  const std::int64_t chunks = (products + chunk - 1) / chunk;
  const auto some = [&](std::int64_t i) {
    for (std::int64_t p = i * chunk; p < std::min(products, (i + 1) * chunk); ++p) one(p);
  };
  kernel::parallel_for(chunks, some);
}

template <class Out, class T>
struct kernel_of<op::matmul, Out, T> {
  static void run(const kernel_call& call) {
    if constexpr (std::is_same_v<T, float>) {
      if (call.attributes<op::matmul>().precision == precision::bfloat16)
        return kernel::the_rounded_matmul.load()(call, nullptr);
      if (const auto packed = kernel::the_packed_matmul.load();
          packed && call.cache_owner && packed(call, nullptr))
        return;
    }
    if constexpr (std::is_same_v<T, bfloat16>) run_products(call, &kernel::gemm_bfloat16<T, T>);
    else run_products(call, &kernel::gemm_rows<T>);
  }
  static void choose(const kernel_call& of, kernel_choice& out) {
    if constexpr (std::is_same_v<T, float>) {
      if (of.attributes<op::matmul>().precision == precision::bfloat16)
        return kernel::the_rounded_matmul.load()(of, &out);
      if (const auto packed = kernel::the_packed_matmul.load()) packed(of, &out);
    }
  }
};

}  // namespace xla::detail
