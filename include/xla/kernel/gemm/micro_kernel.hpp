// SPDX-License-Identifier: Apache-2.0
#pragma once

// The micro-kernel of a product, and what it reads and writes: a *micro-panel*, some rows of a; a
// *panel*, some columns of b in whole vectors; a *result*, a tile of c. How a micro-panel and a
// result are laid out are types, so that one loop serves rows by stride and rows by pointers. It
// packs nothing: block.hpp and partition.hpp do, and call it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "xla/base/compiler.hpp"
#include "xla/kernel/simd/packet.hpp"

namespace xla::kernel::detail {

/// Calls f(k) for this many steps along k. Two at a time are 3 to 7 % faster in tall kernels. Where
/// the number of instructions limits a loop, as when another thread shares the core, four at a time
/// pay: on a virtual Zen 3, on 2026-12-01, they took 0.8 to 0.9 of the time of single steps in
/// phases of load by others, and 0.95 to 1.0 otherwise.
template <int Rows, class F>
[[gnu::always_inline]] inline void each_step(index_t count, F f) {
  if constexpr (Rows < 12) {
#if defined(__AVX2__) && !defined(__AVX512F__)
#pragma GCC unroll 4
#endif
    for (index_t k = 0; k < count; ++k) f(k);
  } else {
#pragma GCC unroll 2
    for (index_t k = 0; k < count; ++k) f(k);
  }
}

/// Rows of a by strides: element (i, k) is data[i * row + k * step].
template <class T>
struct micro_panel {
  const T* data;
  index_t row, step;

  micro_panel below(index_t rows) const { return {data + rows * row, row, step}; }

  /// Calls f(element of row i) for each of `depth` steps along k.
  template <int Rows, class F>
  [[gnu::always_inline]] void visit(index_t depth, F f) const {
    const T* __restrict at = data;
    const index_t next_row = row, next = step;
    each_step<Rows>(depth, [&](index_t) XLA_INLINE_LAMBDA {
      f([&](index_t i) { return at[i * next_row]; });
      at += next;
    });
  }
};

/// Rows of a by pointers, in pieces of `length` elements along k. Piece 0 of row i begins at
/// rows[i], the next piece at rows[next + i], and so on. The panel begins at element `from` of the
/// first piece.
template <class T>
struct pointer_micro_panel {
  const T* const* rows;
  index_t next, length, from;
  const T* zeros = nullptr;  ///< a piece that is all zeros, where there may be such

  pointer_micro_panel below(index_t count) const {
    return {rows + count, next, length, from, zeros};
  }

  /// Leaves out first and last pieces that are zeros in each of these rows, of a panel of whole
  /// pieces. Returns how many steps along k are left out before the others.
  index_t trim(index_t count, index_t& depth) {
    if (zeros == nullptr) return 0;
    const auto nothing = [&](index_t piece) {
      const T* const* const at = rows + piece * next;
      return std::all_of(at, at + count, [&](const T* p) { return p == zeros; });
    };
    index_t first = 0, last = depth / length;
    while (first < last && nothing(last - 1)) --last;
    while (first < last && nothing(first)) ++first;
    rows += first * next;
    depth = (last - first) * length;
    return first * length;
  }

  template <int Rows, class F>
  [[gnu::always_inline]] void visit(index_t depth, F f) const {
    index_t begin = from;
    for (const T* const* piece = rows; depth > 0; piece += next, begin = 0) {
      const T* at[Rows];
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) at[i] = piece[i] + begin;
      const index_t count = std::min(length - begin, depth);
      each_step<Rows>(count,
                      [&](index_t k) XLA_INLINE_LAMBDA { f([&](index_t i) { return at[i][k]; }); });
      depth -= count;
    }
  }
};

/// Elements in a cache line.
template <class T>
constexpr index_t line_of = 64 / element_size<T>;

/// A micro-panel that also prefetches other memory: some elements at each step along k, at most a
/// cache line. The hardware prefetcher anticipates a panel that comes from memory, but not far
/// enough: 512 channels at 7 x 7 pixels take 1.6 times as long without.
template <class T, class MicroPanel>
struct fetching {
  MicroPanel rows;
  const T* next;
  index_t step;

  fetching below(index_t count) const { return {rows.below(count), next, step}; }
  index_t trim(index_t count, index_t& depth)
    requires requires { rows.trim(count, depth); }
  {
    return rows.trim(count, depth);
  }

  template <int Rows, class F>
  [[gnu::always_inline]] void visit(index_t depth, F f) const {
    const T* at = next;
    const index_t on = step;
    rows.template visit<Rows>(depth, [&](const auto& left) XLA_INLINE_LAMBDA {
      XLA_PREFETCH(at, 0, 2);
      at += on;
      f(left);
    });
  }
};

/// Rows of c a fixed step apart.
template <class T>
struct strided_rows {
  T* data;
  index_t step;
  /// The distance from a tile to the memory that is prefetched while the tile is computed: 0 for
  /// the tile itself.
  index_t ahead = 0;
  static constexpr index_t nothing = -1;  ///< to fetch
  T* row(index_t i) const { return data + i * step; }
  strided_rows from(index_t row, index_t column) const {
    return {data + row * step + column, step, ahead};
  }
  bool fetches() const { return ahead != nothing; }
  void fetch(index_t i, index_t column) const { XLA_PREFETCH(row(i) + ahead + column, 1, 3); }
};

/// Rows of c by pointers.
template <class T>
struct pointer_rows {
  T* const* rows;
  index_t column;
  T* row(index_t i) const { return rows[i] + column; }
  static constexpr bool fetches() { return true; }
  void fetch(index_t i, index_t more) const { XLA_PREFETCH(row(i) + more, 1, 3); }
  pointer_rows from(index_t row, index_t more) const { return {rows + row, column + more}; }
};

/// One call of a micro-kernel: c (+)= a·b for a micro-panel of a and a panel of b. `tail` counts
/// the columns of the last vector, `first` says to store instead of adding to c.
template <class T, class MicroPanel, class Result>
struct micro_call {
  index_t depth;
  MicroPanel a;
  const T* b;
  index_t b_step;
  Result c;
  bool first;
  int tail = 0;
};

/// Stores a tile whose last vector is not full.
template <class T, class Result>
[[gnu::noinline]] void store_edge(const Result& to, bool first, const T* sum, int rows, int columns,
                                  int stride) {
  using vector = packet<T>;
  constexpr int width = lanes<T>;
  for (int i = 0; i < rows; ++i, sum += stride) {
    T* const c = to.row(i);
    int j = 0;
    for (; j + width <= columns; j += width) {
      const auto x = simd::ploadu<vector>(sum + j);
      simd::pstoreu(c + j, first ? x : simd::padd(simd::ploadu<vector>(c + j), x));
    }
    if (j == columns) continue;
    const auto x = simd::ploadu<vector>(sum + j);
    store_part<T>(c + j, first ? x : simd::padd(load_part<T>(c + j, columns - j), x), columns - j);
  }
}

/// Every element of c is one chain of `pmadd`, the packets' multiply-add, over k, for every tile
/// shape: that fixes its bits. A result that has finish(sums, depth, first) stores whole vectors of
/// sums itself, such as one with maps (convolution/register_epilogue.hpp).
template <int Rows, int Vectors, class T, class MicroPanel, class Result>
void micro_kernel(const micro_call<T, MicroPanel, Result>& call) {
  using vector = packet<T>;
  constexpr int width = lanes<T>;
  // Sums that start from c, instead of being added to it, have the bits of one chain.
  constexpr bool goes_on = requires { Result::goes_on; };
  const T* __restrict b = call.b;
  const index_t b_step = call.b_step;
  vector sum[Rows][Vectors];
#pragma GCC unroll 24
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      sum[i][j] = simd::pset1<vector>(T{0});
      if constexpr (goes_on)
        if (!call.first) sum[i][j] = simd::ploadu<vector>(call.c.row(i) + j * width);
    }
  if (call.c.fetches())
#pragma GCC unroll 24
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) call.c.fetch(i, j * width);
  call.a.template visit<Rows>(call.depth, [&](const auto& left) XLA_INLINE_LAMBDA {
    vector row[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) row[j] = simd::ploadu<vector>(b + j * width);
#pragma GCC unroll 24
    for (int i = 0; i < Rows; ++i) {
      const vector one = simd::pset1<vector>(left(i));
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sum[i][j] = simd::pmadd(one, row[j], sum[i][j]);
    }
    b += b_step;
  });
  if constexpr (requires { call.c.finish(sum, call.depth, call.first); })
    return call.c.finish(sum, call.depth, call.first);
  if (call.tail != width) {
    constexpr int stride = Vectors * width;
    alignas(64) T block[Rows][stride];
#pragma GCC unroll 24
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) simd::pstoreu(&block[i][j * width], sum[i][j]);
    return store_edge(call.c, call.first, &block[0][0], Rows, stride - width + call.tail, stride);
  }
  const Result c = call.c;
  const bool first = goes_on || call.first;
#pragma GCC unroll 24
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      T* to = c.row(i) + j * width;
      simd::pstoreu(to, first ? sum[i][j] : simd::padd(simd::ploadu<vector>(to), sum[i][j]));
    }
}

template <class Call>
using micro_pointer = void (*)(const Call&);

template <class Call, int Rows, int Vectors>
constexpr std::array<micro_pointer<Call>, 3> micro_row = {
    &micro_kernel<Rows, 1>, &micro_kernel<Rows, 2>, &micro_kernel<Rows, Vectors>};

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int tile_rows = 8, tile_vectors = 3;
#elif defined(__AVX2__)
inline constexpr int tile_rows = 6, tile_vectors = 2;
#else
inline constexpr int tile_rows = 4, tile_vectors = 2;
#endif

/// The block of c that a micro-kernel keeps in registers, and how micro-panels and panels are
/// packed for it: micro-panel[k * rows + i], panel[k * columns + j].
template <class T, int Rows = tile_rows, int Vectors = tile_vectors>
struct tile {
  using element = T;  ///< of packed micro-panels and panels
  using sum = T;      ///< of c
  static constexpr int rows = Rows, vectors = Vectors, width = lanes<T>, columns = vectors * width;
  /// Micro-panels and panels hold a multiple of this many steps along k, padded with zeros.
  static constexpr index_t step = 1;

  /// State that a thread sets up before it multiplies and releases afterwards, such as the tile
  /// registers of AMX.
  struct session {};

  static micro_panel<T> packed(const T* data) { return {data, 1, rows}; }

  /// The most rows of a kernel: micro-panels of 12 rows leave remainders of 0, 1, 4 or 9 for n x n
  /// pixels.
  static constexpr int tallest = rows == 12 ? 13 : rows;
  /// How many of the `left` rows the next call computes, so that the last call does not get very
  /// few.
  static constexpr index_t next_rows(index_t left) {
    if (left <= tallest) return left;
    return left < 2 * rows ? std::min<index_t>((left + 7) / 8 * 4, rows) : rows;
  }

  /// Computes up to `tallest` rows and `columns` columns, by the largest kernels that fit.
  template <class MicroPanel, class Result>
  static void multiply(micro_call<T, MicroPanel, Result>&& call, index_t height, index_t wide);
};

template <class T, int Rows, int Vectors>
template <class MicroPanel, class Result>
void tile<T, Rows, Vectors>::multiply(micro_call<T, MicroPanel, Result>&& call, index_t height,
                                      index_t wide) {
  using kernel = micro_call<T, MicroPanel, Result>;
  constexpr int most_left = rows > 8 ? 8 : 4;
  const auto last = static_cast<std::size_t>((wide - 1) / width);
  call.tail = static_cast<int>(wide - static_cast<index_t>(last) * width);
  if constexpr (requires { call.a.trim(height, call.depth); })
    call.b += call.a.trim(height, call.depth) * call.b_step;
  while (height > 0) {
    const index_t count = height == tallest     ? tallest
                          : height >= rows      ? rows
                          : height >= most_left ? most_left
                          : height >= 4         ? 4
                          : height >= 2         ? 2
                                                : 1;
    const auto& kernels = count == tallest     ? micro_row<kernel, tallest, vectors>
                          : count == rows      ? micro_row<kernel, rows, vectors>
                          : count == most_left ? micro_row<kernel, most_left, vectors>
                          : count == 4         ? micro_row<kernel, 4, vectors>
                          : count == 2         ? micro_row<kernel, 2, vectors>
                                               : micro_row<kernel, 1, vectors>;
    kernels[last](call);
    call.a = call.a.below(count);
    call.c = call.c.from(count, 0);
    height -= count;
  }
}

}  // namespace xla::kernel::detail
