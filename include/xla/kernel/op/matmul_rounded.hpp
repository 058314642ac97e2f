// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of op::matmul in autocast; gemm/rounded_kernels.hpp makes matmul.hpp call it. Products
// of small m read weights that their buffer caches as bfloat16, from the second call on.

#include <type_traits>

#include "xla/kernel/call.hpp"
#include "xla/kernel/gemm/bfloat16.hpp"
#include "xla/kernel/gemm/product_bfloat16.hpp"
#include "xla/kernel/memory/cached_form.hpp"
#include "xla/kernel/op/matmul.hpp"
#include "xla/op/matmul.hpp"

namespace xla::kernel::detail {

/// Small m times rounded weights, in the same order of sums as without the cache.
template <class T, class A>
void multiply_small_m_by_cached(const strided_product<T, A, bfloat16>& p) {
#if XLA_HAS_DOT
  if (bfloat16_products() != bfloat16_algorithm::fma)
    return multiply_small_m_pairs(p.m, p.n, p.k, p.a, p.b, p.c);
#endif
  if constexpr (is_vector<T>) {
    const auto a = as_read(p.a);
    using read = std::remove_const_t<std::remove_pointer_t<decltype(a.data)>>;
    multiply_small_m_rounded(strided_product<T, read, bfloat16>{p.m, p.n, p.k, a, p.b, p.c});
  }
}

/// One product of small m by weights that the buffer caches as bfloat16, which halves the bytes to
/// read. Returns false for another kind of product, or if nothing is cached. With a `choice` it
/// only reports what is cached. T is float. A longer k is cut into pieces, and a product of one
/// column is transposed.
template <class T>
bool multiply_cached(const ::xla::detail::kernel_call& call, ::xla::detail::kernel_choice* choice) {
  using op::matmul;
  const auto [ta, tb, rounding, ha, hb, of_steps] = call.attributes<matmul>();
  const auto &b = call.in_shapes[1], &c = *call.out_shape;
  const index_t m = c[c.rank - 2], n = c[c.rank - 1], all = count(b);
  const bool one = count(c) == m * n && m > 0 && n > 0 && (n > 1 || m == 1);
  const index_t k = one ? all / n : 0;
  if (!is_vector<T> || rounding != ::xla::detail::precision::bfloat16 || hb || k == 0 ||
      k > longest_piece<T> || m > small_m<T>::rows)
    return false;
  if (choice) return choice->cached = all * index_t{sizeof(bfloat16)}, true;
  const bfloat16* const cached =
      cached_rounded::of(*call.cache_owner, static_cast<const T*>(call.in[1]), all);
  if (!cached) return false;
  const matrix_view<bfloat16> matrix{cached, tb ? 1 : n, tb ? k : 1};
  const auto by_rows = [&]<class A>(const A* a, index_t row, index_t column) {
    multiply_small_m_by_cached<T, A>(
        {m, n, k, {a, row, column}, matrix, {static_cast<T*>(call.out), n}});
  };
  if (ha) by_rows(static_cast<const bfloat16*>(call.in[0]), ta ? 1 : k, ta ? m : 1);
  else by_rows(static_cast<const T*>(call.in[0]), ta ? 1 : k, ta ? m : 1);
  return true;
}

/// See rounded_matmul; T is float.
template <class T>
void run_rounded_matmul(const ::xla::detail::kernel_call& call,
                        ::xla::detail::kernel_choice* choice) {
  using ::xla::detail::run_products;
  if ((choice || call.cache_owner) && multiply_cached<T>(call, choice)) return;
  if (choice) return;
  const auto a = call.attributes<op::matmul>();
  if (a.half_a && a.half_b) run_products(call, &gemm_bfloat16<bfloat16, bfloat16>);
  else if (a.half_a) run_products(call, &gemm_bfloat16<bfloat16, T>);
  else if (a.half_b) run_products(call, &gemm_bfloat16<T, bfloat16>);
  else run_products(call, &gemm_bfloat16<T, T>);
}

}  // namespace xla::kernel::detail
