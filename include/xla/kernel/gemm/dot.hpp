// SPDX-License-Identifier: Apache-2.0
#pragma once

// The micro-kernel of `vdpbf16ps` or `bfdot`, which add the products of two pairs of bfloat16 to
// each float.
// bfloat16.hpp chooses it.

#include "xla/kernel/gemm/dot_pack.hpp"
#if XLA_HAS_DOT

#include <array>
#include <cstddef>
#include <utility>

#include "xla/kernel/gemm/left_operand.hpp"
#include "xla/kernel/gemm/right_operand.hpp"

namespace xla::kernel::detail {

/// Packed rows of a: pair s of row i is pairs[8 s + i].
struct pair_micro_panel {
  const bfloat16_pair* pairs;
  static constexpr index_t row = 1, step = 8;
  pair_micro_panel below(index_t rows) const { return {pairs + rows}; }
};
/// Rows of a by strides: pair s of row i is pairs[i * row + s * step].
struct strided_pairs {
  const bfloat16_pair* pairs;
  index_t row, step;
  strided_pairs below(index_t rows) const { return {pairs + rows * row, row, step}; }
};

template <class MicroPanel, class Result>
using dot_call = micro_call<bfloat16_pair, MicroPanel, Result>;

/// Every element is one chain over the pairs along k, whatever the tile.
template <int Rows, int Vectors, class MicroPanel, class Result>
XLA_DOT_CODE void dot_kernel(const dot_call<MicroPanel, Result>& call) {
  constexpr int width = 16;
  constexpr bool goes_on = requires { Result::goes_on; };
  const Result c = call.c;
  const bool first = call.first;
  const auto last = static_cast<bf16::mask16>((1u << call.tail) - 1u);
  bf16::f32x16 sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      sum[i][j] = bf16::zero_floats();
      if constexpr (goes_on)
        if (!first)
          sum[i][j] =
              bf16::load(c.row(i) + j * width, j + 1 < Vectors ? bf16::mask16{0xffff} : last);
      c.fetch(i, j * width);
    }
  const bfloat16_pair* __restrict a = call.a.pairs;
  const bfloat16_pair* __restrict b = call.b;
  const index_t a_row = call.a.row, a_step = call.a.step, b_step = call.b_step;
  for (index_t k = call.depth; k > 0; --k, a += a_step, b += b_step) {
    bf16::bf16x32 row[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) row[j] = bf16::load(b + width * j);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const bf16::one_pair one = bf16::broadcast(a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) bf16::dot_accumulate(sum[i][j], one, row[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      float* const to = c.row(i) + j * width;
      const bf16::mask16 lanes = j + 1 < Vectors ? 0xffff : last;
      bf16::f32x16 total = sum[i][j];
      if (!goes_on && !first) total = bf16::add(bf16::load(to, lanes), total);
      bf16::store(to, total, lanes);
    }
}

/// Blocks of c of 8 rows by three vectors of AVX-512, or of four of 16 columns by four vectors of
/// NEON. The product's k counts pairs.
struct bfloat16_tile {
  using element = bfloat16_pair;
  using sum = float;
  static constexpr int rows = 8, vectors = bf16::tile_vectors, width = 16,
                       columns = vectors * width;
  static constexpr index_t step = 1;
  static constexpr int tallest = rows;
  struct session {};

  static pair_micro_panel packed(const element* data) { return {data}; }
  static constexpr index_t next_rows(index_t left) { return std::min<index_t>(left, rows); }

  template <class MicroPanel, class Result>
  static void multiply(dot_call<MicroPanel, Result>&& call, index_t height, index_t wide) {
    const auto last = static_cast<std::size_t>((wide - 1) / width);
    call.tail = static_cast<int>(wide - static_cast<index_t>(last) * width);
    while (height > 0) {
      constexpr int most = bf16::tile_rows;
      const index_t count = height >= most ? most : height >= 4 ? 4 : height >= 2 ? 2 : 1;
      const auto& kernels = count == most ? kernels_of<most, MicroPanel, Result>
                            : count == 4  ? kernels_of<4, MicroPanel, Result>
                            : count == 2  ? kernels_of<2, MicroPanel, Result>
                                          : kernels_of<1, MicroPanel, Result>;
      kernels[last](call);
      call.a = call.a.below(count);
      call.c = call.c.from(count, 0);
      height -= count;
    }
  }

 private:
  template <int Rows, class MicroPanel, class Result>
  static constexpr auto kernels_of = []<int... J>(std::integer_sequence<int, J...>) {
    return std::array<micro_pointer<dot_call<MicroPanel, Result>>, vectors>{
        &dot_kernel<Rows, J + 1>...};
  }(std::make_integer_sequence<int, vectors>{});
};

constexpr index_t pairs_of(index_t k) { return (k + 1) / 2; }

/// A left operand of floats or bfloat16 by strides, packed as pairs; k is its length.
template <class View>
struct dot_left {
  View view;
  index_t k;

  void pack(bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows,
            index_t pairs) const {
    constexpr index_t unit = bfloat16_tile::rows;
    pack_pairs(view.from(row, 2 * pair), rows, std::min(2 * pairs, k - 2 * pair),
               {to, next, unit, (rows + unit - 1) / unit});
  }
  auto ahead(range rows, range ks, index_t shares) const {
    return strided_left<bfloat16_tile, View>{view}.ahead(
        rows, {2 * ks.begin, std::min(2 * ks.end, k)}, shares);
  }
  static constexpr index_t grain() { return 16; }
};

/// A right operand, likewise.
template <class View>
struct dot_right {
  View view;
  index_t k;

  void pack(bfloat16_pair* to, index_t pair, index_t column, index_t pairs, index_t columns) const {
    const View from = view.from(2 * pair, column);
    const index_t wide = round_up(columns, bfloat16_tile::width);
    pack_pairs(View{from.data, from.col_stride, from.row_stride}, columns,
               std::min(2 * pairs, k - 2 * pair), {to, 8, wide, wide / 8});
  }
};

}  // namespace xla::kernel::detail

#endif
