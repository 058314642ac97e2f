// SPDX-License-Identifier: Apache-2.0
#pragma once

// The micro-kernel of AMX, written against its instructions: the processor's amx_instructions, or a
// test's emulation. For each 16 pairs along k a micro-panel holds two tiles of 16 rows of a, and a
// panel holds a tile for each 16 columns of b, whose rows are pairs. bfloat16.hpp chooses it.

#include <algorithm>
#include <type_traits>

#include "xla/kernel/gemm/left_operand.hpp"
#include "xla/kernel/simd/amx/tiles.hpp"
#include "xla/kernel/simd/bfloat16_code.hpp"

namespace xla::kernel::detail {

/// Pairs of a row or column, rows, columns and words of a packed tile.
inline constexpr index_t amx_pairs = 16, amx_lines = 16, amx_words = 256;

/// Calls f(i, j), with constants as types, for each of Rows by Columns tiles of sums.
template <int Rows, int Columns, class F>
[[gnu::always_inline]] inline void each_amx_sum(F f) {
  constexpr std::integral_constant<int, 0> zero{};
  constexpr std::integral_constant<int, 1> one{};
  f(zero, zero);
  if constexpr (Columns == 2) f(zero, one);
  if constexpr (Rows == 2) f(one, zero);
  if constexpr (Rows == 2 && Columns == 2) f(one, one);
}

/// The operands of one call: this many times 16 pairs along k; rows of c are `c_step` apart.
struct amx_call {
  const bfloat16_pair *a, *b;
  index_t steps;
  float* c;
  index_t c_step;
  bool first;  ///< sums begin with 0 instead of c
};

/// Sums of Rows by Columns tiles. For each 32 of k and each element there are two chains from 0, of
/// the even and the odd k, whose sum is added to the element.
template <class Instructions, int Rows, int Columns>
void amx_kernel(const amx_call& call) {
  using tiles = Instructions;
  constexpr int left = 4, right = 6;  // sums are in tiles 0 to 3
  constexpr index_t row = amx_pairs * static_cast<index_t>(sizeof(bfloat16_pair));
  const index_t c_row = call.c_step * static_cast<index_t>(sizeof(float));
  const auto tile_at = [&](index_t i, index_t j) {
    return call.c + amx_lines * (i * call.c_step + j);
  };
  each_amx_sum<Rows, Columns>([&](auto i, auto j) {
    if (call.first) tiles::template zero<2 * i + j>();
    else tiles::template load<2 * i + j>(tile_at(i, j), c_row);
  });
  const bfloat16_pair *a = call.a, *b = call.b;
  for (index_t step = 0; step < call.steps; ++step, a += 2 * amx_words, b += Columns * amx_words) {
    tiles::template load<left>(a, row);
    tiles::template load<right>(b, row);
    if constexpr (Columns == 2) tiles::template load<right + 1>(b + amx_words, row);
    if constexpr (Rows == 2) tiles::template load<left + 1>(a + amx_words, row);
    each_amx_sum<Rows, Columns>(
        [](auto i, auto j) { tiles::template dot<2 * i + j, left + i, right + j>(); });
  }
  each_amx_sum<Rows, Columns>(
      [&](auto i, auto j) { tiles::template store<2 * i + j>(tile_at(i, j), c_row); });
}

/// Blocks of c of 32 by 32. The product's k counts pairs.
template <class Instructions>
struct amx_tile {
  using element = bfloat16_pair;
  using sum = float;
  static constexpr int rows = 32, vectors = 2, width = 16, columns = vectors * width;
  static constexpr index_t step = amx_pairs;
  static constexpr index_t deepest = 256;  ///< a micro-panel and a panel then fit the L1 cache
  static constexpr int tallest = rows;

  /// A thread's tiles while it multiplies.
  struct session {
    session() {
      static constexpr tile_shapes whole;
      Instructions::configure(whole);
    }
    ~session() { Instructions::release(); }
    session(const session&) = delete;
    session& operator=(const session&) = delete;
  };
  struct micro_panel {
    const element* pairs;
  };

  static micro_panel packed(const element* data) { return {data}; }
  static constexpr index_t next_rows(index_t left) { return std::min<index_t>(left, rows); }

  template <class Result>
  static void multiply(micro_call<element, micro_panel, Result>&& call, index_t height,
                       index_t wide) {
    constexpr void (*kernels[2][2])(const amx_call&) = {
        {&amx_kernel<Instructions, 1, 1>, &amx_kernel<Instructions, 1, 2>},
        {&amx_kernel<Instructions, 2, 1>, &amx_kernel<Instructions, 2, 2>}};
    const auto kernel = kernels[height > amx_lines][wide > width];
    const index_t steps = (call.depth + step - 1) / step;
    if constexpr (std::is_same_v<Result, strided_rows<sum>>)
      if (height % amx_lines == 0 && wide % width == 0)
        return kernel({call.a.pairs, call.b, steps, call.c.data, call.c.step, call.first});
    // Tiles are loaded and stored whole. At an edge there is less of c, and rows by pointers have
    // no common stride, so these go through a buffer.
    alignas(64) float block[rows * columns] = {};
    if (!call.first)
      for (index_t i = 0; i < height; ++i) std::copy_n(call.c.row(i), wide, block + i * columns);
    kernel({call.a.pairs, call.b, steps, block, columns, call.first});
    for (index_t i = 0; i < height; ++i) std::copy_n(block + i * columns, wide, call.c.row(i));
  }
};

}  // namespace xla::kernel::detail
