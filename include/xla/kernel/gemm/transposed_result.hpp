// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shortcut of products: computes c transposed if columns of b are contiguous along k and m is
// small. gemm.hpp calls better_transposed() to decide.

#include <algorithm>

#include "xla/kernel/gemm/small_m_rows.hpp"

namespace xla::kernel::detail {

/// The ordinary product: matrices by run-time strides, so that one instance serves all.
template <class T>
using ordinary_product =
    product<tile<T>, strided_left<tile<T>, matrix_view<T>>, strided_right<tile<T>, matrix_view<T>>>;

/// Whether computing c transposed is better: the columns of b are contiguous along k, and
/// transposing them does not pay for a small m. Then b is the left operand, read in place, and a is
/// transposed if its rows fill vectors.
template <class T>
bool better_transposed(const strided_product<T>& p) {
  constexpr index_t max_rows = 64, least_columns = 128;
  return p.b.row_stride == 1 && p.b.col_stride != 1 && p.m <= max_rows && p.n >= least_columns &&
         8 * p.m >= 7 * round_up(p.m, lanes<T>);
}

/// Computes some columns of c this way, in the same order of summation.
template <class T>
void multiply_transposed(const strided_product<T>& p, range columns) {
  constexpr index_t unit = tile<T>::rows, width = tile<T>::width, most = 512;
  const index_t step = round_up(p.m, width);
  const index_t parts = (columns.size() + most - 1) / most;
  struct transposed_result;
  for (index_t i = 0; i < parts; ++i) {
    const range within = part(columns.size(), unit, parts, i);
    T* const c =
        static_cast<T*>(thread_scratch<transposed_result>(within.size() * step * element_size<T>));
    const auto b = p.b.from(0, columns.begin + within.begin);
    ordinary_product<T> q{within.size(),
                          p.m,
                          p.k,
                          {{b.data, b.col_stride, 1}},
                          {{p.a.data, p.a.col_stride, p.a.row_stride}},
                          {c, step}};
    q.cut();
    multiply_part(q, {0, q.m}, {0, q.n});
    const auto to = p.c.from(0, columns.begin + within.begin);
    index_t j = 0;
    for (; j + width <= q.m; j += width)
      pack_columns<T>(to.data + j, to.step, c + j * step, step, p.m, width);
    for (; j < q.m; ++j)
      for (index_t r = 0; r < p.m; ++r) to.row(r)[j] = c[j * step + r];
  }
}

/// All columns, shared among threads.
template <class T>
void multiply_transposed(const strided_product<T>& p, index_t parts) {
  parallel_for(parts,
               [&](index_t i) { multiply_transposed(p, part(p.n, tile<T>::rows, parts, i)); });
}

}  // namespace xla::kernel::detail
