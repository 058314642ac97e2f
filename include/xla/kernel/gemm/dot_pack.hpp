// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/kernel/simd/bfloat16_code.hpp"
#if XLA_HAS_DOT

// As in packet.hpp: g++ 12 sees uninitialised registers in the intrinsics.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <cstdint>

#include "xla/kernel/gemm/micro_kernel.hpp"
#include "xla/kernel/memory/matrix_view.hpp"
#include "xla/shape/bfloat16.hpp"

// Packs operands of `vdpbf16ps`: pairs of bfloat16, neighbours along k, a word of 32 bits each.
// Rows of a and columns of b are *lines* here, 16 at a time. Products, convolutions and attention
// use it.

namespace xla::kernel::detail {

#define XLA_DOT_INLINE XLA_DOT_CODE [[gnu::always_inline]] inline

/// Where packed lines go: pair s of lines 8 h to 8 h + 7 to data[h * half + s * step].
struct pair_place {
  bfloat16_pair* data;
  index_t half, step, halves;
};

/// The first n of 16 or 32 lanes; all for more.
XLA_DOT_INLINE __mmask16 first_16(index_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1u);
}
XLA_DOT_INLINE __mmask32 first_32(index_t n) {
  return n >= 32 ? 0xffffffffu : n <= 0 ? 0u : (1u << n) - 1u;
}

/// Elements of a line as 16 pairs, zeros from the n-th element on.
XLA_DOT_INLINE __m512i line_pairs(const float* p, index_t n) {
  if (n >= 32) return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(p + 16), _mm512_loadu_ps(p));
  const __m512 high = _mm512_maskz_loadu_ps(first_16(n - 16), p + 16);
  return (__m512i)_mm512_cvtne2ps_pbh(high, _mm512_maskz_loadu_ps(first_16(n), p));
}
XLA_DOT_INLINE __m512i line_pairs(const bfloat16* p, index_t n) {
  if (n >= 32) return _mm512_loadu_si512(p);
  return _mm512_maskz_loadu_epi16(first_32(n), p);
}

/// Pairs of n neighbouring lines of which elements lie at p and, if there is a second, at q.
XLA_DOT_INLINE __m512i pairs_across(const float* p, const float* q, index_t n, bool second) {
  const __m512 low = _mm512_maskz_loadu_ps(first_16(n), p);
  const __m512 high = _mm512_maskz_loadu_ps(first_16(second ? n : 0), q);
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}
XLA_DOT_INLINE __m512i pairs_across(const bfloat16* p, const bfloat16* q, index_t n, bool second) {
  const __m256i low = _mm256_maskz_loadu_epi16(first_16(n), p);
  const __m256i high = _mm256_maskz_loadu_epi16(first_16(second ? n : 0), q);
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/// 16 x 16 words, transposed.
XLA_DOT_INLINE void transpose_words(__m512i* r) {
  __m512i t[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512i low = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    const __m512i high = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    const __m512i low2 = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]);
    const __m512i high2 = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
    t[i] = _mm512_unpacklo_epi64(low, low2);
    t[i + 1] = _mm512_unpackhi_epi64(low, low2);
    t[i + 2] = _mm512_unpacklo_epi64(high, high2);
    t[i + 3] = _mm512_unpackhi_epi64(high, high2);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i even = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
    const __m512i odd = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
    const __m512i even2 = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
    const __m512i odd2 = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
    r[i] = _mm512_shuffle_i32x4(even, even2, 0x88);
    r[i + 4] = _mm512_shuffle_i32x4(odd, odd2, 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(even, even2, 0xdd);
    r[i + 12] = _mm512_shuffle_i32x4(odd, odd2, 0xdd);
  }
}

/// A pair of 16 lines, of which the upper 8 may not be wanted.
XLA_DOT_INLINE void store_pairs(bfloat16_pair* to, index_t half, bool both, __m512i pairs) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(pairs));
  if (both)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + half), _mm512_extracti64x4_epi64(pairs, 1));
}

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
    __m512i r[16];
    if (lines >= 16 && depth - k >= 32) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) r[i] = line_pairs(from[i] + k, 32);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        r[i] = i < lines ? line_pairs(from[i] + k, depth - k) : _mm512_setzero_si512();
    }
    transpose_words(r);
    if (depth - k >= 31) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i, to += step) store_pairs(to, half, both, r[i]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i, to += step)
        if (k + 2 * i < depth) store_pairs(to, half, both, r[i]);
    }
  }
}

/// Any number of lines next to each other, elements of each `stride` apart: all lines of a pair
/// before the next, since they may be far apart in memory.
template <class T>
XLA_DOT_CODE void pack_near_lines(const T* from, index_t stride, index_t lines, index_t depth,
                                  pair_place to) {
  for (index_t k = 0; k < depth; k += 2, from += 2 * stride, to.data += to.step) {
    const bool second = k + 1 < depth;
    const T* const next = second ? from + stride : from;
    index_t h = 0;
    if (second)
      for (; 8 * h + 16 <= lines; h += 2)
        store_pairs(to.data + h * to.half, to.half, true,
                    pairs_across(from + 8 * h, next + 8 * h, 16, true));
    for (; h < to.halves; h += 2)
      store_pairs(to.data + h * to.half, to.half, h + 1 < to.halves,
                  pairs_across(from + 8 * h, next + 8 * h, lines - 8 * h, second));
  }
}

/// Packs lines of a matrix whose rows they are; zeros where there is none.
template <class T>
void pack_pairs(matrix_view<T> from, index_t lines, index_t depth, pair_place to) {
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
