// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products with five to eight rows by `dot`, in the order of the tile of dot.hpp. It does not
// pack b where its rows are contiguous. bfloat16.hpp chooses it.

#include "xla/kernel/gemm/dot.hpp"
#if XLA_HAS_DOT

#include <algorithm>

#include "xla/kernel/gemm/dot_small_m.hpp"
#include "xla/kernel/gemm/gemm.hpp"

namespace xla::kernel::detail {

/// Rows of a micro-panel times up to three vectors of columns of b, whose rows are contiguous and
/// are rounded in registers; the same sums as dot_kernel() with a panel.
template <int Rows, int Vectors, class B>
XLA_DOT_CODE void dot_rows_kernel(const bfloat16_pair* a, const B* b, index_t b_row, index_t depth,
                                  index_t columns, strided_rows<float> c, index_t rows,
                                  bool first) {
  constexpr index_t width = bfloat16_tile::width, unit = bfloat16_tile::rows;
  bf16::f32x16 sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) sum[i][j] = bf16::zero_floats();
  const auto last = columns - width * (Vectors - 1);
  index_t k = 0;
  for (; k + 2 <= depth; k += 2, a += unit, b += 2 * b_row) {
    bf16::bf16x32 right[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      const B* const p = b + width * j;
      right[j] = bf16::zip_pairs(p, p + b_row, j + 1 < Vectors ? width : last, true);
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const bf16::one_pair one = bf16::broadcast(a[i]);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) bf16::dot_accumulate(sum[i][j], one, right[j]);
    }
  }
  if (k < depth)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      const B* const p = b + width * j;
      const bf16::bf16x32 right = bf16::zip_pairs(p, p, j + 1 < Vectors ? width : last, false);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) bf16::dot_accumulate(sum[i][j], bf16::broadcast(a[i]), right);
    }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      if (i >= rows) continue;
      float* const to = c.row(i) + j * width;
      const bf16::mask16 lanes = j + 1 < Vectors ? 0xffff : bf16::first_16(last);
      if (!first) sum[i][j] = bf16::add(bf16::load(to, lanes), sum[i][j]);
      bf16::store(to, sum[i][j], lanes);
    }
}

/// Whether packing b does not pay for such a small m, where rows of b are contiguous.
template <class B>
bool reads_pairs_in_place(index_t m, matrix_view<B> b) {
  return m <= bfloat16_tile::rows && b.col_stride == 1 && b.row_stride > 1;
}

/// Such a product, in the order of the tile: its columns are shared among threads.
template <class A, class B>
void multiply_rows_in_place(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b,
                            strided_rows<float> c, const epilogue* after) {
  constexpr index_t unit = bfloat16_tile::rows, wide = bfloat16_tile::columns;
  constexpr index_t width = bfloat16_tile::width;
  product<bfloat16_tile, dot_left<matrix_view<A>>, dot_right<matrix_view<B>>> p{
      m, n, pairs_of(k), {a, k}, {b, k}, c, after};
  p.cut();
  bfloat16_pair* const micro_panel = left_scratch().get<bfloat16_pair>(p.k * unit);
  p.a.pack(micro_panel, 0, 0, 0, m, p.k);
  const auto some = [&](index_t panel) {
    const index_t j = panel * wide, columns = std::min(wide, n - j);
    constexpr int rows = bf16::tile_rows, most = bf16::tile_vectors;
    const auto kernel = columns > 2 * width ? &dot_rows_kernel<rows, most, B>
                        : columns > width   ? &dot_rows_kernel<rows, std::min(2, most), B>
                                            : &dot_rows_kernel<rows, 1, B>;
    for (index_t block = 0; block < p.depths; ++block) {
      const range ks = p.block(block);
      const index_t first = 2 * ks.begin;
      for (index_t i = 0; i < m; i += rows)
        kernel(micro_panel + ks.begin * unit + i, b.from(first, j).data, b.row_stride,
               std::min(2 * ks.size(), k - first), columns, c.from(i, j), m - i, block == 0);
    }
    p.made({0, m}, {j, j + columns}, p.block(p.depths - 1));
  };
  const index_t panels = (n + wide - 1) / wide;
  if (num_threads() > 1 && m * n * p.k >= worth_sharing) return parallel_for(panels, some);
  for (index_t i = 0; i < panels; ++i) some(i);
}

}  // namespace xla::kernel::detail

#endif
