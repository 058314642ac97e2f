// SPDX-License-Identifier: Apache-2.0
#pragma once

// Transposes columns of b that are contiguous along k, in registers, while the first micro-panel of
// rows is multiplied. The multiply-adds hide the memory's latency, and a product of small m needs
// no panel at all. partition.hpp chooses it.

#include <algorithm>

#include "xla/base/compiler.hpp"
#include "xla/kernel/gemm/block.hpp"

namespace xla::kernel::detail {

#if defined(__GNUC__) && !defined(__clang__)
// A packet as a template argument loses attributes that nothing here relies on.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

/// A micro-panel of tile::rows rows times a vector of columns of b. Rows from `rows` on are
/// computed, not stored. The columns are also packed into a panel, unless `packed` is null.
template <class T>
struct transposing_call {
  index_t depth;
  micro_panel<T> a;
  const T* b;
  index_t b_column, columns;
  T* packed;
  index_t packed_step;
  T* c;
  index_t c_row, rows;
  bool first;
};

/// Sums in the order of the micro-kernels.
template <class T>
void transposing_kernel(const transposing_call<T>& call) {
  using vector = packet<T>;
  constexpr int width = tile<T>::width, rows = tile<T>::rows;
  constexpr index_t ahead = 3 * width;
  const index_t a_row = call.a.row, a_step = call.a.step, b_column = call.b_column;
  const T* a = call.a.data;
  T* packed = call.packed;
  index_t column[width];
  for (int q = 0; q < width; ++q) column[q] = std::min<index_t>(q, call.columns - 1) * b_column;
  vector sum[rows];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) sum[i] = simd::pset1<vector>(T{0});
  const auto step = [&](const vector& right) XLA_INLINE_LAMBDA {
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
      sum[i] = simd::pmadd(simd::pset1<vector>(a[i * a_row]), right, sum[i]);
    a += a_step;
    if (packed == nullptr) return;
    simd::pstoreu(packed, right);
    packed += call.packed_step;
  };
  square<T> block;
  index_t k = 0;
  for (; k + width <= call.depth; k += width) {
    // The next data of this block's columns, or the first data of the next columns.
    const T* const from = call.b + k;
    const T* const next = k + ahead < call.depth
                              ? from + ahead
                              : call.b + width * b_column + (k + ahead - call.depth);
#pragma GCC unroll 16
    for (int q = 0; q < width; ++q) {
      block.packet[q] = simd::ploadu<vector>(from + column[q]);
      simd::prefetch(next + column[q]);
    }
    transpose<T>(block);
#pragma GCC unroll 16
    for (int q = 0; q < width; ++q) step(block.packet[q]);
  }
  if (k < call.depth) {
    for (int q = 0; q < width; ++q)
      block.packet[q] = load_part<T>(call.b + k + column[q], call.depth - k);
    transpose<T>(block);
    for (int q = 0; k + q < call.depth; ++q) step(block.packet[q]);
  }
  const bool whole = call.columns == width;
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
    if (i >= call.rows) break;
    T* const to = call.c + i * call.c_row;
    vector all = sum[i];
    if (!call.first)
      all = simd::padd(whole ? simd::ploadu<vector>(to) : load_part<T>(to, call.columns), all);
    if (whole) simd::pstoreu(to, all);
    else store_part<T>(to, all, call.columns);
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Whether to transpose while multiplying, for this many rows. An incomplete micro-panel is padded,
/// which does not pay for a row or two.
template <class P>
bool transposes_with(const P& p, index_t rows) {
  using tile = typename P::tile;
  const index_t height = std::min<index_t>(rows, tile::rows);
  const bool padded =
      p.micro_panels == nullptr && height > 4 && round_up(height, tile::width) >= tile::rows;
  return p.b.transposed() && (height == tile::rows || padded);
}

/// Packs b for one block of k and a range of columns, while multiplying the first micro-panel of
/// the rows. Returns how many rows that is.
template <class P>
index_t transpose_block(const P& p, typename P::element* to, range rows, range columns, range ks,
                        index_t wide) {
  using T = typename P::element;
  constexpr index_t unit = tile<T>::rows, width = tile<T>::width;
  const index_t height = std::min(rows.size(), unit), padded = round_up(height, width);
  micro_panel<T> a = p.left(rows, ks);
  if (p.micro_panels == nullptr && height < unit) {
    T* const copy = left_scratch().template get<T>(padded * p.depth);
    pack_panel(copy, matrix_view<T>{a.data, a.step, a.row}, ks.size(), height);
    a = {copy, 1, padded};
  }
  for (index_t j = columns.begin; j < columns.end; j += wide) {
    const index_t end = std::min(j + wide, columns.end);
    for (index_t q = j; q < end; q += width)
      transposing_kernel<T>({.depth = ks.size(),
                             .a = a,
                             .b = p.b.column(ks.begin, q),
                             .b_column = p.b.view.col_stride,
                             .columns = std::min(width, end - q),
                             .packed = rows.size() > height
                                           ? to + (j - columns.begin) * ks.size() + (q - j)
                                           : nullptr,
                             .packed_step = round_up(end - j, width),
                             .c = p.c.row(rows.begin) + q,
                             .c_row = p.c.step,
                             .rows = height,
                             .first = ks.begin == 0});
  }
  p.made({rows.begin, rows.begin + height}, columns, ks);
  return height;
}

}  // namespace xla::kernel::detail
