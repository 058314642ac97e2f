// SPDX-License-Identifier: Apache-2.0
#pragma once

// The algorithms of a product whose operands are rounded to bfloat16, behind the driver of
// gemm.hpp. bfloat16_products() says which one this process takes.
//   fma   rounded_left, rounded_right   rounded.hpp      packs floats for the tile of floats;
//                                                        rows along k are rounded copies
//   dot   dot_left, dot_right           dot_pack.hpp     packs pairs along k
//         bfloat16_tile                 dot.hpp          products of pairs; small m:
//                                                        dot_small_m.hpp,
//                                                        five to eight rows: dot_rows.hpp, a long
//                                                        k and a small c: dot_blocks.hpp
//   amx   amx_left, amx_right           amx_pack.hpp     packs pairs along k in tiles
//         amx_tile                      amx.hpp          tdpbf16ps; small m as dot

#include <algorithm>
#include <type_traits>
#include <utility>

#include "xla/kernel/gemm/amx_pack.hpp"
#include "xla/kernel/gemm/dot.hpp"
#include "xla/kernel/gemm/dot_blocks.hpp"
#include "xla/kernel/gemm/dot_rows.hpp"
#include "xla/kernel/gemm/dot_small_m.hpp"
#include "xla/kernel/gemm/long_k.hpp"
#include "xla/kernel/gemm/product_bfloat16.hpp"
#include "xla/kernel/gemm/rounded.hpp"
#include "xla/kernel/simd/bfloat16_support.hpp"

namespace xla::kernel {
namespace detail {

/// Elements that are read as bfloat16.
template <class T>
concept reads_bfloat16 = std::is_same_v<T, rounded_float> || std::is_same_v<T, bfloat16>;

/// A matrix as memory stores it, and as products read it.
inline matrix_view<float> as_stored(matrix_view<rounded_float> x) {
  return {reinterpret_cast<const float*>(x.data), x.row_stride, x.col_stride};
}
inline matrix_view<bfloat16> as_stored(matrix_view<bfloat16> x) { return x; }
inline matrix_view<rounded_float> as_read(matrix_view<float> x) {
  return {reinterpret_cast<const rounded_float*>(x.data), x.row_stride, x.col_stride};
}
inline matrix_view<bfloat16> as_read(matrix_view<bfloat16> x) { return x; }

/// Small m: rounds the rows of a first, and b while reading it.
template <class A, class B>
void multiply_small_m_rounded(const strided_product<float, A, B>& p) {
  float* const a = left_scratch().get<float>(p.m * p.k);
  for (index_t i = 0; i < p.m; ++i)
    for (index_t k = 0; k < p.k; ++k) a[i * p.k + k] = *p.a.from(i, k).data;
  multiply_small_m(strided_product<float, float, B>{p.m, p.n, p.k, {a, p.k, 1}, p.b, p.c, p.after});
}

template <reads_bfloat16 A, reads_bfloat16 B>
void multiply_ordinary(const strided_product<float, A, B>& p) {
  const auto a = as_stored(p.a);
  const auto b = as_stored(p.b);
  using left = std::remove_const_t<decltype(a)>;
  using right = std::remove_const_t<decltype(b)>;
#if XLA_HAS_DOT
  const bfloat16_algorithm by = bfloat16_products();
  if (by != bfloat16_algorithm::fma) {
    if (p.m <= small_m<float>::rows) return multiply_small_m_pairs(p.m, p.n, p.k, a, b, p.c);
#if XLA_HAS_AMX
    if (by == bfloat16_algorithm::amx) return multiply_tiles(p.m, p.n, p.k, a, b, p.c, p.after);
#endif
    if (reads_pairs_in_place(p.m, b))
      return multiply_rows_in_place(p.m, p.n, p.k, a, b, p.c, p.after);
    dot_product<typename left::element, typename right::element> pairs{
        p.m, p.n, pairs_of(p.k), {a, p.k}, {b, p.k}, p.c, p.after};
    pairs.cut();
    return shares_blocks(pairs) ? multiply_blocks(pairs) : multiply(std::move(pairs));
  }
#endif
  if constexpr (is_vector<float>)
    if (p.m <= small_m<float>::rows) return multiply_small_m_rounded(p);
  if (a.col_stride == 1) return multiply_rounded_rows(p.m, p.n, p.k, a, b, p.c, p.after);
  multiply(product<tile<float>, rounded_left<left>, rounded_right<right>>{
      p.m, p.n, p.k, {{a}}, {{b}}, p.c, p.after});
}

}  // namespace detail

template <class A, class B>
void gemm_bfloat16(std::int64_t m, std::int64_t n, std::int64_t k, matrix_view<A> a,
                   matrix_view<B> b, float* c, std::int64_t ldc, const epilogue* after) {
  if (m <= 0 || n <= 0) return;
  if (k > 0)
    return detail::multiply_pieces(m, n, k, detail::as_read(a), detail::as_read(b), c, ldc, after);
  for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, 0.f);
}
XLA_PRODUCT_INSTANCE(void gemm_bfloat16(std::int64_t, std::int64_t, std::int64_t, matrix_view<float>,
                                      matrix_view<float>, float*, std::int64_t, const epilogue*));
XLA_PRODUCT_INSTANCE(void gemm_bfloat16(std::int64_t, std::int64_t, std::int64_t,
                                      matrix_view<bfloat16>, matrix_view<bfloat16>, float*,
                                      std::int64_t, const epilogue*));
XLA_PRODUCT_INSTANCE(void gemm_bfloat16(std::int64_t, std::int64_t, std::int64_t, matrix_view<float>,
                                      matrix_view<bfloat16>, float*, std::int64_t,
                                      const epilogue*));
XLA_PRODUCT_INSTANCE(void gemm_bfloat16(std::int64_t, std::int64_t, std::int64_t,
                                      matrix_view<bfloat16>, matrix_view<float>, float*,
                                      std::int64_t, const epilogue*));

}  // namespace xla::kernel
