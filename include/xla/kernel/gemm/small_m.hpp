// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of small m (up to 4 rows), such as one token times a weight: they read b once, in place,
// at the speed of the memory. Rows or columns of b may be contiguous; both give the same bits,
// because both sum in one order. Element k belongs to lane k % W of vector k / W % 4. Every
// (vector, lane) is a chain of 2 `pmadd`; then (v0 + v2) + (v1 + v3) is added to the lane's total.
// At the end the upper half of the lanes is added to the lower until one is left. small_m_rows.hpp
// runs these loops.

#include <algorithm>
#include <type_traits>

#include "xla/base/compiler.hpp"
#include "xla/kernel/gemm/partition.hpp"
#include "xla/kernel/simd/fold.hpp"

namespace xla::kernel::detail {

/// The order of a product of small m along k.
template <class T>
struct small_m {
  static constexpr int width = lanes<T>, vectors = 4, steps = 2;
  static constexpr index_t round = vectors * width, segment = steps * round;
  /// With more rows than these, packing b pays.
  static constexpr index_t rows = 4;
};

/// Rows of a, contiguous along k, and the begin of their part of c.
template <class T>
struct small_m_rows {
  const T* a;
  index_t a_row;
  T* c;
  index_t c_row, depth;
};

/// How elements of b are read as vectors of the sum's type; a specialisation for each other type.
template <class B>
struct small_m_elements {
  static packet<B> load(const B* p) { return simd::ploadu<packet<B>>(p); }
  static packet<B> load_first(const B* p, index_t n) { return load_part<B>(p, n); }
};

/// Adds the chains of a segment to the total.
template <class T>
packet<T> add_vectors(packet<T> total, const packet<T>* sum) {
  return simd::padd(total, simd::padd(simd::padd(sum[0], sum[2]), simd::padd(sum[1], sum[3])));
}

/// Adds the upper half of the vectors to the lower until one is left.
template <class T>
packet<T> fold_lanes(packet<T>* lane) {
#pragma GCC unroll 8
  for (int half = small_m<T>::width / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) lane[i] = simd::padd(lane[i], lane[i + half]);
  return lane[0];
}

/// Adds the segment at k to the lane totals of `Rows` rows; `load(p, i)` reads the vector at p,
/// which is element i of the segment. With fewer Steps the rest of the segment is zeros.
template <class T, int Rows, int Steps, class B, class Load>
void dot_segment(const small_m_rows<T>& x, const B* b, index_t k, packet<T>* total, Load load) {
  using order = small_m<T>;
  using vector = packet<T>;
  constexpr int width = order::width, vectors = order::vectors;
  vector sum[Rows][vectors];
#pragma GCC unroll 8
  for (int s = 0; s < Steps * vectors; ++s) {
    const vector right = load(b + k + s * width, s * width);
    const int v = s % vectors;
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i)
      sum[i][v] = simd::pmadd(load(x.a + i * x.a_row + k + s * width, s * width), right,
                              s < vectors ? simd::pset1<vector>(T{0}) : sum[i][v]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) total[i] = add_vectors<T>(total[i], sum[i]);
}

/// Adds the elements [k, end) of `Rows` rows times one column of b that is contiguous along k to
/// the lane totals. Those of `next`, if not null, are prefetched.
template <class T, int Rows, class B>
void dot_column(small_m_rows<T> x, const B* b, const B* next, index_t k, index_t end,
                packet<T>* total) {
  using order = small_m<T>;
  using vector = packet<T>;
  constexpr index_t line = 64 / sizeof(B);
  vector sum[Rows];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) sum[i] = total[i];
  // If loading parts of a vector needs much code, the rest is copied to a buffer and loaded whole.
  T rest[loads_parts ? 1 : Rows * order::segment];
  B right[loads_parts ? 1 : order::segment];
  const auto whole = []<class E>(const E* p, index_t) { return small_m_elements<E>::load(p); };
  for (;;) {
#pragma GCC unroll 1
    for (; k + order::segment <= end; k += order::segment) {
      if (next != nullptr)
#pragma GCC unroll 8
        for (index_t i = 0; i < order::segment; i += line) simd::prefetch(next + k + i);
      dot_segment<T, Rows, order::steps>(x, b, k, sum, whole);
    }
    if (Rows == 1 && k + order::round == end) {
      dot_segment<T, Rows, order::steps / 2>(x, b, k, sum, whole);
      k = end;
    }
    if (loads_parts || k == end) break;
    std::fill_n(rest, Rows * order::segment, T{0});
    std::fill_n(right, order::segment, B{});
    for (int i = 0; i < Rows; ++i)
      std::copy(x.a + i * x.a_row + k, x.a + i * x.a_row + end, rest + i * order::segment);
    std::copy(b + k, b + end, right);
    x.a = rest;
    x.a_row = order::segment;
    b = right;
    next = nullptr;
    k = 0;
    end = order::segment;
  }
  if constexpr (loads_parts)
    if (k < end)
      dot_segment<T, Rows, order::steps>(
          x, b, k, sum, [left = end - k]<class E>(const E* p, index_t i) {
            if (i + order::width <= left) return small_m_elements<E>::load(p);
            return i < left ? small_m_elements<E>::load_first(p, left - i)
                            : simd::pset1<vector>(T{0});
          });
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) total[i] = sum[i];
}

/// Whether parts of rows stay in registers while they are multiplied by many columns: an element of
/// them is then loaded once. For one row and a matrix of 1 MiB that takes 18 % less time (AVX-512,
/// EPYC of Zen 4, 2026-11-29).
template <class T>
constexpr bool keeps_rows = lanes<T> * sizeof(T) == 64;

/// The most rounds of a row in registers; half of them of each of two.
constexpr int row_rounds = 4;

/// `Rows` rows times whole vectors of columns, `Rounds` rounds at a time.
template <class T, int Rows, int Rounds>
void dot_rows(const small_m_rows<T>& x, const T* b, index_t b_column, index_t columns) {
  using order = small_m<T>;
  using vector = packet<T>;
  constexpr int vectors = order::vectors, width = order::width, terms = Rounds * vectors;
  constexpr auto packets = fold_order<T>::packets;
  vector left[Rows][terms];
  const auto load = [&](const T* a) XLA_INLINE_LAMBDA {
#pragma GCC unroll 2
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
      for (int s = 0; s < terms; ++s)
        left[i][s] = simd::ploadu<vector>(a + i * x.a_row + s * width);
  };
  load(x.a);
  for (index_t i = 0; i < columns; i += width) {
    vector total[Rows][width];
    for (index_t k = 0;;) {
      const T* column = b + i * b_column + k;
#pragma GCC unroll 1
      for (int j = 0; j < width; ++j, column += b_column) {
        const int p = packets[static_cast<std::size_t>(j)];
        vector all[Rows], sum[Rows][vectors];
#pragma GCC unroll 2
        for (int r = 0; r < Rows; ++r) all[r] = k == 0 ? simd::pset1<vector>(T{0}) : total[r][p];
#pragma GCC unroll 16
        for (int s = 0; s < terms; ++s) {
          const int v = s % vectors;
          const bool begins = s / vectors % order::steps == 0;
          const vector right = simd::ploadu<vector>(column + s * width);
#pragma GCC unroll 2
          for (int r = 0; r < Rows; ++r) {
            sum[r][v] =
                simd::pmadd(left[r][s], right, begins ? simd::pset1<vector>(T{0}) : sum[r][v]);
            if (v + 1 == vectors && (!begins || s + 1 == terms))
              all[r] = add_vectors<T>(all[r], sum[r]);
          }
        }
#pragma GCC unroll 2
        for (int r = 0; r < Rows; ++r) total[r][p] = all[r];
      }
      k += terms * width;
      if (k == x.depth) break;
      load(x.a + k);
    }
    if (x.depth > terms * width) load(x.a);
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) simd::pstoreu(x.c + r * x.c_row + i, fold_packets<T>(total[r]));
  }
}

/// The part of `Rows` rows that stays in the L1 cache while all columns of a tile are multiplied,
/// together with the prefetched data of the next part.
template <class T, int Rows>
constexpr index_t part_in_cache =
    round_up((Rows == 1 ? 32768 : 16384) / sizeof(T) / Rows, small_m<T>::segment);

/// `Rows` rows times `columns` columns, a vector at most, each contiguous along k.
template <class T, int Rows, class B>
void dot_tile(const small_m_rows<T>& x, const B* b, index_t b_column, index_t columns) {
  constexpr int width = small_m<T>::width;
  constexpr index_t most = part_in_cache<T, Rows>;
  constexpr bool converts = !std::is_same_v<T, B>;
  // The hardware does not anticipate the next part unless it is contiguous.
  const bool fetch = converts || (Rows > 1 && x.depth > most);
  const index_t last = columns - 1;
  constexpr auto packets = fold_order<T>::packets;
  packet<T> total[Rows][width];
  for (index_t k = 0; k < x.depth; k += most)
    for (int j = 0; j < width; ++j) {
      const int p = packets[static_cast<std::size_t>(j)];
      packet<T> one[Rows];
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) one[i] = k == 0 ? simd::pset1<packet<T>>(T{0}) : total[i][p];
      // Missing columns repeat the last one.
      dot_column<T, Rows>(
          x, b + std::min<index_t>(j, last) * b_column,
          fetch ? b + (converts ? j + 1 : std::min<index_t>(j + 1, last)) * b_column : nullptr, k,
          std::min(k + most, x.depth), one);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) total[i][p] = one[i];
    }
#pragma GCC unroll 1
  for (int i = 0; i < Rows; ++i) {
    const packet<T> sum = fold_packets<T>(total[i]);
    if (columns == width) simd::pstoreu(x.c + i * x.c_row, sum);
    else store_part<T>(x.c + i * x.c_row, sum, columns);
  }
}

#if defined(__AVX__)
/// One row times two tiles of whole vectors of columns, each contiguous along k: side by side, so
/// that the memory delivers two runs at once.
template <class T>
void dot_two_tiles(const T* x, index_t depth, const T* const (&b)[2], index_t b_column,
                   T* const (&c)[2]) {
  using order = small_m<T>;
  constexpr int width = order::width;
  constexpr index_t most = part_in_cache<T, 1>;
  constexpr auto packets = fold_order<T>::packets;
  const small_m_rows<T> row{x, 0, nullptr, 0, depth};
  const auto whole = [](const T* p, index_t) { return simd::ploadu<packet<T>>(p); };
  packet<T> total[2][width];
  for (index_t k = 0; k < depth; k += most) {
    const index_t end = std::min(k + most, depth), cut = end - (end - k) % order::segment;
    for (int j = 0; j < width; ++j) {
      const int p = packets[static_cast<std::size_t>(j)];
      const T* const column[] = {b[0] + j * b_column, b[1] + j * b_column};
      packet<T> one[2];
      for (int q = 0; q < 2; ++q) one[q] = k == 0 ? simd::pset1<packet<T>>(T{0}) : total[q][p];
#pragma GCC unroll 1
      for (index_t i = k; i < cut; i += order::segment)
#pragma GCC unroll 2
        for (int q = 0; q < 2; ++q)
          dot_segment<T, 1, order::steps>(row, column[q], i, &one[q], whole);
      for (int q = 0; q < 2; ++q) {
        if (cut < end) dot_column<T, 1, T>(row, column[q], nullptr, cut, end, &one[q]);
        total[q][p] = one[q];
      }
    }
  }
  for (int q = 0; q < 2; ++q) simd::pstoreu(c[q], fold_packets<T>(total[q]));
}
#endif

/// Like axpy_lane() for any number of rows: for columns that fill no vector, and if the segment
/// ends early, after `depth` elements from this lane on.
template <class T, class B>
[[gnu::noinline]] void axpy_rest(const small_m_rows<T>& x, int rows, const T* a, const B* b,
                                 index_t b_row, index_t columns, T* total, index_t row,
                                 index_t depth) {
  using order = small_m<T>;
  using vector = packet<T>;
  constexpr int width = order::width, vectors = order::vectors;
  for (int i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; j += width) {
      vector sum[vectors];
      for (int v = 0; v < vectors; ++v) {
        sum[v] = simd::pset1<vector>(T{0});
        for (index_t k = v * width; k < depth; k += order::round) {
          const B* from = b + k * b_row + j;
          sum[v] =
              simd::pmadd(simd::pset1<vector>(a[i * x.a_row + k]),
                          j + width <= columns ? small_m_elements<B>::load(from)
                                               : small_m_elements<B>::load_first(from, columns - j),
                          sum[v]);
        }
      }
      T* const to = total + i * row + j;
      simd::pstoreu(to, add_vectors<T>(simd::ploadu<vector>(to), sum));
    }
}

/// Adds one segment to the totals of one lane, for a strip of columns. Its rows of b are a vector
/// apart; those of the next lane begin at `next`. `total` belongs to the first row of x; each
/// further row's totals are `row` elements on.
template <class T, int Rows, class B>
void axpy_lane(const small_m_rows<T>& x, const T* a, const B* b, const B* next, index_t b_row,
               index_t columns, T* total, index_t row) {
  using order = small_m<T>;
  using vector = packet<T>;
  constexpr int width = order::width, vectors = order::vectors, terms = order::steps * vectors;
  vector left[Rows][terms];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int s = 0; s < terms; ++s) left[i][s] = simd::pset1<vector>(a[i * x.a_row + s * width]);
  index_t j = 0;
  for (; j + width <= columns; j += width) {
    vector right[terms];
#pragma GCC unroll 8
    for (int s = 0; s < terms; ++s) {
      right[s] = small_m_elements<B>::load(b + s * width * b_row + j);
      // Fewer rows use the data no faster than memory delivers it, so prefetching does not help.
      if constexpr (Rows == 4) simd::prefetch(next + s * width * b_row + j);
    }
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
      vector sum[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        sum[v] = simd::pmadd(left[i][v], right[v], simd::pset1<vector>(T{0}));
#pragma GCC unroll 2
        for (int s = v + vectors; s < terms; s += vectors)
          sum[v] = simd::pmadd(left[i][s], right[s], sum[v]);
      }
      T* const to = total + i * row + j;
      simd::pstoreu(to, add_vectors<T>(simd::ploadu<vector>(to), sum));
    }
  }
  if (j < columns) axpy_rest(x, Rows, a, b + j, b_row, columns - j, total + j, row, order::segment);
}

/// The columns of a strip: enough for long runs of each row of b, few enough that the totals stay
/// in the L1 cache.
template <class T>
constexpr index_t strip_columns = 2048 / sizeof(T);

/// 1, 2 or 4 rows times a strip of columns, if the rows of b are contiguous.
template <class T, class B>
void axpy_strip(const small_m_rows<T>& x, int rows, matrix_view<B> b, index_t columns) {
  using order = small_m<T>;
  using vector = packet<T>;
  constexpr int width = order::width;
  const index_t stride = round_up(columns, width), row = width * stride;
  T* const totals = right_scratch().get<T>(rows * row);
  std::fill_n(totals, rows * row, T{0});
  for (index_t begin = 0; begin < x.depth; begin += order::segment)
    for (int lane = 0; lane < width; ++lane) {
      const index_t k = begin + lane, depth = x.depth - k;
      const B* const from = b.data + k * b.row_stride;
      const B* const next =
          from + (lane + 1 < width ? 1 : order::segment - width + 1) * b.row_stride;
      const auto add = [&]<int Rows>(std::integral_constant<int, Rows>) {
        axpy_lane<T, Rows>(x, x.a + k, from, next, b.row_stride, columns, totals + lane * stride,
                           row);
      };
      if (depth <= order::segment - width) {
        if (depth > 0)
          axpy_rest(x, rows, x.a + k, from, b.row_stride, columns, totals + lane * stride, row,
                    depth);
      } else if (rows == 1) add(std::integral_constant<int, 1>{});
      else if (rows == 2) add(std::integral_constant<int, 2>{});
      else add(std::integral_constant<int, 4>{});
    }
  for (int i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; j += width) {
      vector total[width];
#pragma GCC unroll 16
      for (int lane = 0; lane < width; ++lane)
        total[lane] = simd::ploadu<vector>(totals + i * row + lane * stride + j);
      const vector sum = fold_lanes<T>(total);
      if (j + width <= columns) simd::pstoreu(x.c + i * x.c_row + j, sum);
      else store_part<T>(x.c + i * x.c_row + j, sum, columns - j);
    }
}

}  // namespace xla::kernel::detail
