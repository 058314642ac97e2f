// SPDX-License-Identifier: Apache-2.0
#pragma once

// The entry point behind gemm(): cuts a long k into pieces, treats one column as one row, tries the
// shortcuts. It multiplies nothing itself: gemm.hpp and small_m_rows.hpp do.

#include <algorithm>

#include "xla/kernel/gemm/gemm.hpp"
#include "xla/kernel/gemm/product.hpp"
#include "xla/kernel/reduce/block_sum.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel {
namespace detail {

template <class T>
void multiply_ordinary(const strided_product<T>& p, bool some_rows = false) {
  if constexpr (is_vector<T>)
    if (!some_rows && multiply_shortly(p)) return;
  multiply(ordinary_product<T>{p.m, p.n, p.k, {p.a}, {p.b}, p.c, p.after});
}

/// A product of any shape, in the kernels' order: the elements' multiply_ordinary().
template <class T, class A, class B>
void multiply_whole(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b, T* c,
                    index_t ldc, const epilogue* after = nullptr, bool some_rows = false) {
  if (n != 1 || m == 1) {
    const strided_product<T, A, B> p{m, n, k, a, b, {c, ldc}, after};
    if constexpr (std::is_same_v<T, A> && std::is_same_v<T, B>)
      return multiply_ordinary(p, some_rows && n != 1 && m <= small_m<T>::rows);
    else return multiply_ordinary(p);
  }
  // Transposed, a product with one column is one of small m.
  using transposed = strided_product<T, B, A>;
  const matrix_view<B> row{b.data, b.col_stride, b.row_stride};
  const matrix_view<A> columns{a.data, a.col_stride, a.row_stride};
  T some[256];
  const index_t most = ldc == 1 ? m : 256;
  T* const to = ldc == 1 ? c : some;
  for (index_t i = 0; i < m; i += most) {
    const index_t count = std::min(most, m - i);
    multiply_ordinary(transposed{1, count, k, row, columns.from(0, i), {to, count}});
    for (index_t j = 0; to == some && j < count; ++j) c[(i + j) * ldc] = some[j];
  }
}

/// A longer k is cut into pieces of this length, whose products are added as blocks: kernels add
/// only a few elements plainly.
template <class T>
constexpr index_t longest_piece = 128 * small_m<T>::segment;

template <class T, class A, class B>
void multiply_pieces(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b, T* c,
                     index_t ldc, const epilogue* after, bool some_rows = false) {
  constexpr index_t most = longest_piece<T>;
  multiply_whole<T>(m, n, std::min(k, most), a, b, c, ldc, k <= most ? after : nullptr, some_rows);
  if (k <= most) return;
  ::xla::detail::working_memory memory;
  T* const lost = static_cast<T*>(memory.take(static_cast<std::size_t>(2 * m * n) * sizeof(T)));
  T* const piece = lost + m * n;
  std::fill_n(lost, m * n, T{0});
  for (index_t at = most; at < k; at += most) {
    multiply_whole(m, n, std::min(k - at, most), a.from(0, at), b.from(at, 0), piece, n, nullptr,
                   some_rows);
    for (index_t i = 0; i < m; ++i)
      column_sums<T>{c + i * ldc, lost + i * n}.add({piece + i * n, nullptr}, n, false);
  }
  for (index_t i = 0; i < m; ++i) column_sums<T>{c + i * ldc, lost + i * n}.total(c + i * ldc, n);
}

template <class T>
void multiply_fractions(index_t m, index_t n, index_t k, matrix_view<T> a, matrix_view<T> b, T* c,
                        index_t ldc, const epilogue* after, bool some_rows) {
  multiply_pieces(m, n, k, a, b, c, ldc, after, some_rows);
}

}  // namespace detail
}  // namespace xla::kernel
