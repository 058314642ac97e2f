// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packs operands for the tile of amx.hpp, by the instructions of dot_pack.hpp, which every
// processor with AMX has. Whether elements are floats or bfloat16 is a run-time value, not a type,
// so that one instance of the driver serves both.

#include "xla/kernel/simd/bfloat16_code.hpp"
#if XLA_HAS_AMX

#include <algorithm>
#include <type_traits>

#include "xla/kernel/gemm/amx.hpp"
#include "xla/kernel/gemm/dot_pack.hpp"
#include "xla/kernel/gemm/gemm.hpp"

namespace xla::kernel::detail {

/// 16 lines by 16 pairs as rows of 64 bytes: a line per row, or a pair per row if Transposed.
/// Missing ones are zeros.
template <bool Transposed, class T>
XLA_DOT_CODE void pack_amx_tile(matrix_view<T> from, index_t lines, index_t depth,
                                bfloat16_pair* to) {
  T copy[16][32];
  if (from.row_stride != 1 && from.col_stride != 1) {
    lines = std::min(lines, amx_lines);
    depth = std::min<index_t>(depth, 32);
    for (index_t i = 0; i < lines; ++i)
      for (index_t k = 0; k < depth; ++k) copy[i][k] = *from.from(i, k).data;
    from = {&copy[0][0], 32, 1};
  }
  const bool across = from.col_stride != 1;
  const index_t step = across ? 2 * from.col_stride : from.row_stride, next = from.col_stride;
  const index_t rows = across ? (depth + 1) / 2 : lines;
  const T* p = from.data;
  bf16::bf16x32 r[16];
  if (lines >= 16 && depth >= 32) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i, p += step)
      r[i] = across ? bf16::zip_pairs(p, p + next, 16, true) : bf16::load_pairs(p, 32);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const bool second = 2 * i + 1 < depth;
      r[i] = i >= rows ? bf16::zero_pairs()
             : across  ? bf16::zip_pairs(p, second ? p + next : p, lines, second)
                       : bf16::load_pairs(p, depth);
      if (i + 1 < rows) p += step;
    }
  }
  if (across != Transposed) bf16::transpose(r);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) bf16::store(to + amx_pairs * i, r[i]);
}

/// The same if Transposed, for any number of adjacent lines: one pair of all lines before the next
/// pair, which reads whole cache lines. 16 lines t of pairs 16 s go to to_tile(t, s).
template <class T, class ToTile>
XLA_DOT_CODE void pack_amx_pairs(matrix_view<T> from, index_t lines, index_t depth,
                                 ToTile to_tile) {
  const index_t stride = from.col_stride, down = (lines + 15) / 16;
  for (index_t k = 0; k < round_up(depth, 32); k += 2)
    for (index_t t = 0; t < down; ++t) {
      bfloat16_pair* const to = to_tile(t, k / 32) + k % 32 / 2 * amx_pairs;
      const T* const q = from.data + std::min(k, depth - 1) * stride + 16 * t;
      const bf16::bf16x32 pairs = k >= depth ? bf16::zero_pairs()
                                  : k + 1 == depth
                                      ? bf16::zip_pairs(q, q, lines - 16 * t, false)
                                      : bf16::zip_pairs(q, q + stride, lines - 16 * t, true);
      bf16::store(to, pairs);
    }
}

/// Rows of a or columns of b, each a line along k: floats, or bfloat16 if `half`.
struct amx_operand {
  const void* data;
  index_t line_stride, stride;  // to the next line, and along it
  index_t k;                    // the length of a line
  bool half;

  template <class T>
  static amx_operand of(const T* data, index_t line_stride, index_t stride, index_t k) {
    return {data, line_stride, stride, k, std::is_same_v<T, bfloat16>};
  }

  /// Packs some lines from one pair on: 16 lines t of pairs 16 s go to to_tile(t, s).
  template <bool Transposed, class ToTile>
  void pack(index_t line, index_t pair, index_t lines, index_t pairs, ToTile to_tile) const {
    const index_t depth = std::min(2 * pairs, k - 2 * pair);
    if (half) pack_tiles<Transposed>(from<bfloat16>(line, 2 * pair), lines, depth, to_tile);
    else pack_tiles<Transposed>(from<float>(line, 2 * pair), lines, depth, to_tile);
  }

  template <class T>
  matrix_view<T> from(index_t line, index_t at) const {
    return matrix_view<T>{static_cast<const T*>(data), line_stride, stride}.from(line, at);
  }

 private:
  /// If lines are adjacent, all of one pair before the next pair: pairs may be far apart.
  template <bool Transposed, class T, class ToTile>
  static void pack_tiles(matrix_view<T> from, index_t lines, index_t depth, ToTile to_tile) {
    const auto one = [&](index_t t, index_t s) {
      pack_amx_tile<Transposed>(from.from(16 * t, 32 * s), lines - 16 * t, depth - 32 * s,
                                to_tile(t, s));
    };
    const index_t down = (lines + 15) / 16, along = (depth + 31) / 32;
    const bool near = from.row_stride == 1 && from.col_stride != 1;
    if (Transposed && near) {
      pack_amx_pairs(from, lines, depth, to_tile);
    } else if (near) {
      for (index_t s = 0; s < along; ++s)
        for (index_t t = 0; t < down; ++t) one(t, s);
    } else {
      for (index_t t = 0; t < down; ++t)
        for (index_t s = 0; s < along; ++s) one(t, s);
    }
  }
};

/// The left operand: each micro-panel is packed as two tiles of 16 rows.
struct amx_left {
  amx_operand rows_of_a;

  void pack(bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows,
            index_t pairs) const {
    rows_of_a.pack<false>(row, pair, rows, pairs, [&](index_t t, index_t s) {
      return to + t / 2 * next + (2 * s + t % 2) * amx_words;
    });
  }
  upcoming<char> ahead(range rows, range ks, index_t shares) const {
    const amx_operand& a = rows_of_a;
    return a.half ? ahead_of(a.from<bfloat16>(rows.begin, 2 * ks.begin), rows, ks, shares)
                  : ahead_of(a.from<float>(rows.begin, 2 * ks.begin), rows, ks, shares);
  }
  static constexpr index_t grain() { return amx_pairs; }

 private:
  template <class T>
  upcoming<char> ahead_of(matrix_view<T> first, range rows, range ks, index_t shares) const {
    constexpr auto size = element_size<T>;
    const auto data = reinterpret_cast<const char*>(first.data);
    const index_t depth = std::min(2 * ks.end, rows_of_a.k) - 2 * ks.begin;
    if (rows.size() <= 0) return {};
    if (first.col_stride == 1 && depth <= 256)
      return {data, first.row_stride * size, rows.size(), depth * size, shares};
    if (first.col_stride != 1 && first.row_stride == 1)
      return {data, first.col_stride * size, depth, rows.size() * size, shares};
    return {};
  }
};

struct amx_right {
  amx_operand columns_of_b;

  void pack(bfloat16_pair* to, index_t pair, index_t column, index_t pairs, index_t columns) const {
    const index_t across = (columns + amx_lines - 1) / amx_lines;
    columns_of_b.pack<true>(column, pair, columns, pairs, [&](index_t t, index_t s) {
      return to + (s * across + t) * amx_words;
    });
  }
};

/// A product by tiles; k is its length, at least 1.
template <class Instructions = amx_instructions, class A, class B>
void multiply_tiles(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b,
                    strided_rows<float> c, const epilogue* after) {
  multiply(product<amx_tile<Instructions>, amx_left, amx_right>{
      m,
      n,
      (k + 1) / 2,
      {amx_operand::of(a.data, a.row_stride, a.col_stride, k)},
      {amx_operand::of(b.data, b.col_stride, b.row_stride, k)},
      c,
      after});
}

}  // namespace xla::kernel::detail

#endif
