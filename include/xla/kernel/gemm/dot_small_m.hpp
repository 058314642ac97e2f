// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of small m (up to 4 rows) by `dot`: it reads b once, in place, and rounds it in
// registers. Whether rows or columns of b are contiguous, both sum in one order: pair s along k
// belongs to lane s % 16; every lane is one chain; at the end the upper half of the lanes is added
// to the lower until one is left. bfloat16.hpp chooses it.

#include "xla/base/compiler.hpp"
#include "xla/kernel/gemm/dot_pack.hpp"
#if XLA_HAS_DOT

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "xla/kernel/gemm/small_m_rows.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"

namespace xla::kernel::detail {

/// The rows of a as pairs of bfloat16, `step` apart, in whole vectors; the begin of their part of
/// c; and whether b is so large that it comes from memory.
struct pair_rows {
  const bfloat16_pair* a;
  index_t step, depth;  // depth in elements
  float* c;
  index_t c_row;
  bool far;
};

/// The number of columns that `Rows` rows are multiplied with at a time.
template <int Rows>
constexpr int small_n = std::min(bf16::sums_at_once, bf16::small_m_sums / Rows);

/// Adds up to 32 elements of k, from the given one on.
template <int Rows, int Columns, class B>
XLA_DOT_INLINE void add_columns(const bfloat16_pair* a, index_t step,
                                const B* const (&column)[Columns], index_t k, index_t n,
                                bf16::f32x16 (&sum)[Rows][Columns]) {
  bf16::bf16x32 row[Rows];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) row[i] = bf16::load(a + i * step);
#pragma GCC unroll 8
  for (int j = 0; j < Columns; ++j) {
    const bf16::bf16x32 right = bf16::load_pairs(column[j] + k, n);
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) bf16::dot_accumulate(sum[i][j], row[i], right);
  }
}

/// Prefetches 32 elements.
template <class T>
XLA_DOT_INLINE void fetch_line(const T* p) {
#pragma GCC unroll 2
  for (std::size_t i = 0; i < 32; i += 64 / sizeof(T)) XLA_PREFETCH(p + i, 0, 3);
}

/// `Rows` rows times up to small_n columns, which are contiguous along k. If `Fetches`, as many of
/// the following columns are prefetched.
template <int Rows, bool Fetches, class B>
XLA_DOT_CODE void dot_long_columns(const pair_rows& x, const B* b, index_t b_column,
                                   index_t columns) {
  constexpr int most = small_n<Rows>;
  const B* column[most];
  for (index_t j = 0; j < most; ++j) column[j] = b + std::min(j, columns - 1) * b_column;
  bf16::f32x16 sum[Rows][most];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < most; ++j) sum[i][j] = bf16::zero_floats();
  const bfloat16_pair* a = x.a;
  index_t k = 0;
  for (; k + 32 <= x.depth; k += 32, a += 16) {
    if constexpr (Fetches)
#pragma GCC unroll 8
      for (index_t j = 0; j < most; ++j) fetch_line(b + (most + j) * b_column + k);
    add_columns<Rows>(a, x.step, column, k, 32, sum);
  }
  if (k < x.depth) add_columns<Rows>(a, x.step, column, k, x.depth - k, sum);
  constexpr int together = bf16::sums_at_once, rows = together / most;
#pragma GCC unroll 4
  for (int i = 0; i < Rows; i += rows) {
    alignas(32) float all[together];
    bf16::store_sums(all, &sum[i][0]);
    for (int r = 0; r < rows; ++r)
      for (index_t j = 0; j < columns; ++j) x.c[(i + r) * x.c_row + j] = all[r * most + j];
  }
}

/// Adds some steps of one lane to the totals of up to 16 neighbouring columns: pairs of rows of b
/// at p and every 32 rows on. The last pair may lack its second row.
template <int Rows, int Steps, class B>
XLA_DOT_INLINE void add_steps(const bf16::one_pair (&left)[Rows][Steps], const B* p, index_t b_row,
                              index_t n, bool second, float* total, index_t row) {
  bf16::bf16x32 right[Steps];
#pragma GCC unroll 4
  for (int s = 0; s < Steps; ++s, p += 32 * b_row) {
    const bool both = s + 1 < Steps || second;
    right[s] = bf16::zip_pairs(p, both ? p + b_row : p, n, both);
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i, total += row) {
    bf16::f32x16 sum = bf16::load(total);
#pragma GCC unroll 4
    for (int s = 0; s < Steps; ++s) bf16::dot_accumulate(sum, left[i][s], right[s]);
    bf16::store(total, sum);
  }
}

/// Adds `Steps` steps of one lane to the totals of a strip of columns, whose rows are contiguous:
/// pairs at k, k + 32, …
template <int Rows, int Steps, class B>
XLA_DOT_CODE void add_lane(const pair_rows& x, const B* b, index_t b_row, index_t k,
                           index_t columns, float* total, index_t row) {
  bf16::one_pair left[Rows][Steps];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int s = 0; s < Steps; ++s) left[i][s] = bf16::broadcast(x.a[i * x.step + k / 2 + 16 * s]);
  const bool second = k + 32 * (Steps - 1) + 1 < x.depth;
  const B* const p = b + k * b_row;
  index_t j = 0;
  if (second)
    for (; j + 16 <= columns; j += 16)
      add_steps<Rows, Steps>(left, p + j, b_row, 16, true, total + j, row);
  for (; j < columns; j += 16)
    add_steps<Rows, Steps>(left, p + j, b_row, columns - j, second, total + j, row);
}

/// Adds the upper half of the totals' lanes to the lower one until one lane is left, which is
/// written.
XLA_DOT_CODE inline void fold_strip(float* total, index_t stride, index_t columns, float* c) {
  for (index_t j = 0; j < columns; j += 16) {
    bf16::f32x16 lane[16];
#pragma GCC unroll 16
    for (int l = 0; l < 16; ++l) lane[l] = bf16::load(total + l * stride + j);
#pragma GCC unroll 4
    for (int half = 8; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int l = 0; l < half; ++l) lane[l] = bf16::add(lane[l], lane[l + half]);
    bf16::store(c + j, lane[0], bf16::first_16(columns - j));
  }
}

/// `Rows` rows times a strip of columns, if the rows of b are contiguous.
template <int Rows, class B>
void dot_strip(const pair_rows& x, matrix_view<B> b, index_t columns) {
  constexpr int steps = bf16::steps_at_once;
  const index_t stride = round_up(columns, 16), row = 16 * stride;
  float* const totals = right_scratch().get<float>(Rows * row);
  std::fill_n(totals, Rows * row, 0.f);
  for (index_t begin = 0; begin < x.depth; begin += 32 * steps)
    for (index_t k = begin; k < std::min(begin + 32, x.depth); k += 2) {
      float* const total = totals + (k - begin) / 2 * stride;
      if (k + 32 * (steps - 1) < x.depth)
        add_lane<Rows, steps>(x, b.data, b.row_stride, k, columns, total, row);
      else
        for (index_t at = k; at < x.depth; at += 32)
          add_lane<Rows, 1>(x, b.data, b.row_stride, at, columns, total, row);
    }
  for (int i = 0; i < Rows; ++i) fold_strip(totals + i * row, stride, columns, x.c + i * x.c_row);
}

/// Some columns of a product with `Rows` rows.
template <int Rows, class B>
void dot_small_n(const pair_rows& x, matrix_view<B> b, index_t columns) {
  constexpr index_t strip = 512;
  if (b.col_stride == 1 && b.row_stride != 1) {
    for (index_t j = 0; j < columns; j += strip) {
      pair_rows part = x;
      part.c += j;
      dot_strip<Rows>(part, b.from(0, j), std::min(strip, columns - j));
    }
    return;
  }
  constexpr index_t most = small_n<Rows>;
  const bool strided = b.row_stride != 1 && x.depth > 1;
  // The hardware prefetcher suffices for one row of floats.
  const bool fetches = x.far && !strided && (Rows > 1 || sizeof(B) < sizeof(float));
  B* const copy = strided ? right_scratch().get<B>(most * x.depth) : nullptr;
  for (index_t j = 0; j < columns; j += most) {
    const index_t count = std::min(most, columns - j);
    const matrix_view<B> some = b.from(0, j);
    for (index_t q = 0; strided && q < count; ++q)
      for (index_t k = 0; k < x.depth; ++k) copy[q * x.depth + k] = *some.from(k, q).data;
    pair_rows part = x;
    part.c += j;
    const auto multiply = fetches && j + 2 * most <= columns ? &dot_long_columns<Rows, true, B>
                                                             : &dot_long_columns<Rows, false, B>;
    multiply(part, strided ? copy : some.data, strided ? x.depth : b.col_stride, count);
  }
}

/// Rows as pairs, whole vectors of them.
template <class A>
XLA_DOT_CODE void pack_pair_rows(matrix_view<A> a, index_t rows, index_t depth, index_t step,
                                 bfloat16_pair* to) {
  for (index_t i = 0; i < rows; ++i)
    for (index_t k = 0; k < depth; k += 32) {
      A some[32];
      const A* from = a.from(i, k).data;
      const index_t n = std::min<index_t>(32, depth - k);
      if (a.col_stride != 1) {
        for (index_t q = 0; q < n; ++q) some[q] = from[q * a.col_stride];
        from = some;
      }
      bf16::store(to + i * step + k / 2, bf16::load_pairs(from, n));
    }
}

/// A product of small m: its columns are shared among threads.
template <class A, class B>
void multiply_small_m_pairs(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b,
                            strided_rows<float> c) {
  constexpr index_t worth_sharing = 1 << 17, chunk_work = 1 << 16;
  const index_t step = round_up(k, 32) / 2;
  bfloat16_pair* const rows = left_scratch().get<bfloat16_pair>(m * step);
  pack_pair_rows(a, m, k, step, rows);
  const bool far = n * k * static_cast<index_t>(sizeof(B)) > near_memory<>;
  const auto some = [&](range columns) {
    for (index_t i = 0, count; i < m; i += count) {
      const pair_rows x{rows + i * step, step, k, c.row(i) + columns.begin, c.step, far};
      const matrix_view<B> right = b.from(0, columns.begin);
      count = m - i >= 4 ? 4 : m - i >= 2 ? 2 : 1;
      if (count == 4) dot_small_n<4>(x, right, columns.size());
      else if (count == 2) dot_small_n<2>(x, right, columns.size());
      else dot_small_n<1>(x, right, columns.size());
    }
  };
  const index_t threads = num_threads(), work = n * k;
  if (threads == 1 || work < worth_sharing) return some({0, n});
  const index_t parts =
      std::clamp<index_t>(work / chunk_work, 1, std::min((n + 15) / 16, 4 * threads));
  parallel_for(parts, [&](index_t i) { some(part(n, 16, parts, i)); });
}

}  // namespace xla::kernel::detail

#endif
