// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packs operands of `vdpbf16ps` or `bfdot`: pairs of bfloat16, neighbours along k, a word of 32
// bits each. Rows of a and columns of b are *lines* here, 16 at a time. Products, convolutions and
// attention use it.

#include "xla/kernel/simd/bfloat16_code.hpp"
#if XLA_HAS_DOT

#include <algorithm>
#include <cstdint>

#include "xla/kernel/gemm/micro_kernel.hpp"
#include "xla/kernel/memory/matrix_view.hpp"
#include "xla/kernel/simd/bfloat16_pairs.hpp"
#include "xla/shape/bfloat16.hpp"

namespace xla::kernel::detail {

/// The destination of packed lines: pair s of lines 8 h to 8 h + 7 is at data[h * half + s * step].
struct packed_pairs {
  bfloat16_pair* data;
  index_t half, step, halves;
};

/// Lines a fixed step apart.
template <class T>
struct stepped_lines {
  const T* from;
  index_t step;
  const T* operator[](index_t i) const { return from + i * step; }
};

/// Up to 16 lines, each contiguous along k: from[i], of stepped_lines or pointers.
template <class Lines>
XLA_DOT_CODE void pack_long_lines(Lines from, index_t lines, index_t depth, bfloat16_pair* to,
                                  index_t half, index_t step, bool both) {
  for (index_t k = 0; k < depth; k += 32) {
    bf16::bf16x32 r[16];
    if (lines >= 16 && depth - k >= 32) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) r[i] = bf16::load_pairs(from[i] + k, 32);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        r[i] = i < lines ? bf16::load_pairs(from[i] + k, depth - k) : bf16::zero_pairs();
    }
    bf16::transpose(r);
    if (depth - k >= 31) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i, to += step) bf16::store_halves(to, half, both, r[i]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i, to += step)
        if (k + 2 * i < depth) bf16::store_halves(to, half, both, r[i]);
    }
  }
}

/// Any number of adjacent lines, whose elements are `stride` apart: one pair of all lines before
/// the next pair, since pairs may be far apart in memory.
template <class T>
XLA_DOT_CODE void pack_near_lines(const T* from, index_t stride, index_t lines, index_t depth,
                                  packed_pairs to) {
  for (index_t k = 0; k < depth; k += 2, from += 2 * stride, to.data += to.step) {
    const bool second = k + 1 < depth;
    const T* const next = second ? from + stride : from;
    index_t h = 0;
    if (second)
      for (; 8 * h + 16 <= lines; h += 2)
        bf16::store_halves(to.data + h * to.half, to.half, true,
                           bf16::zip_pairs(from + 8 * h, next + 8 * h, 16, true));
    for (; h < to.halves; h += 2)
      bf16::store_halves(to.data + h * to.half, to.half, h + 1 < to.halves,
                         bf16::zip_pairs(from + 8 * h, next + 8 * h, lines - 8 * h, second));
  }
}

/// Packs rows of a matrix as lines; missing ones are zeros.
template <class T>
void pack_pairs(matrix_view<T> from, index_t lines, index_t depth, packed_pairs to) {
  if (from.row_stride == 1 && from.col_stride != 1)
    return pack_near_lines(from.data, from.col_stride, lines, depth, to);
  for (index_t h = 0; h < to.halves; h += 2) {
    const index_t some = std::min<index_t>(16, lines - 8 * h);
    const bool both = h + 1 < to.halves;
    const auto at = from.from(8 * h, 0);
    bfloat16_pair* const data = to.data + h * to.half;
    if (from.col_stride == 1) {
      pack_long_lines(stepped_lines<T>{at.data, at.row_stride}, some, depth, data, to.half, to.step,
                      both);
      continue;
    }
    T copy[16][32];
    for (index_t k = 0; k < depth; k += 32) {
      const index_t count = std::min<index_t>(32, depth - k);
      for (index_t i = 0; i < some; ++i)
        for (index_t q = 0; q < count; ++q) copy[i][q] = *at.from(i, k + q).data;
      pack_long_lines(stepped_lines<T>{&copy[0][0], 32}, some, count, data + k / 2 * to.step,
                      to.half, to.step, both);
    }
  }
}

}  // namespace xla::kernel::detail

#endif
