// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pairs of bfloat16 in AVX-512: rounding, loads of parts and the product of pairs.

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

#include <cstdint>

#include "xla/shape/bfloat16.hpp"

namespace xla::kernel::bf16 {

using detail::bfloat16_pair;
using f32x16 = __m512;
using bf16x32 = __m512i;  ///< a pair in each 32 bits
using one_pair = bf16x32;  ///< the same in all of them
using mask16 = __mmask16;

// Of 32 vectors, so many hold sums: rows and vectors of a tile, vectors of products of small m and
// of those that store_sums() takes. add_lane() takes so many steps at a time.
constexpr int tile_rows = 8, tile_vectors = 3, small_m_sums = 16, sums_at_once = 8;
constexpr int steps_at_once = 4;

/// A mask of the first n of 16 or 32 lanes.
XLA_DOT_INLINE mask16 first_16(std::int64_t n) {
  return static_cast<mask16>(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1u);
}
XLA_DOT_INLINE __mmask32 first_32(std::int64_t n) {
  return n >= 32 ? 0xffffffffu : n <= 0 ? 0u : (1u << n) - 1u;
}

XLA_DOT_INLINE f32x16 zero_floats() { return _mm512_setzero_ps(); }
XLA_DOT_INLINE f32x16 load(const float* p) { return _mm512_loadu_ps(p); }
/// Zeros in the lanes that the mask lacks.
XLA_DOT_INLINE f32x16 load(const float* p, mask16 lanes) { return _mm512_maskz_loadu_ps(lanes, p); }
XLA_DOT_INLINE void store(float* to, f32x16 x) { _mm512_storeu_ps(to, x); }
XLA_DOT_INLINE void store(float* to, f32x16 x, mask16 lanes) {
  _mm512_mask_storeu_ps(to, lanes, x);
}
XLA_DOT_INLINE f32x16 add(f32x16 a, f32x16 b) { return _mm512_add_ps(a, b); }

XLA_DOT_INLINE bf16x32 zero_pairs() { return _mm512_setzero_si512(); }
XLA_DOT_INLINE bf16x32 load(const bfloat16_pair* p) { return _mm512_loadu_si512(p); }
XLA_DOT_INLINE void store(bfloat16_pair* to, bf16x32 x) { _mm512_storeu_si512(to, x); }
/// Stores lanes 0 to 7 to `to` and, if `both`, the others to `to + half`.
XLA_DOT_INLINE void store_halves(bfloat16_pair* to, std::int64_t half, bool both, bf16x32 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(x));
  if (both)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + half), _mm512_extracti64x4_epi64(x, 1));
}
/// One pair in every lane.
XLA_DOT_INLINE one_pair broadcast(bfloat16_pair pair) {
  return _mm512_set1_epi32(static_cast<int>(pair));
}

/// sum += the products of the pairs of a and b, the higher elements first. It is assembly, because
/// the intrinsic next to a broadcast makes clang 16 crash.
XLA_DOT_INLINE void dot_accumulate(f32x16& sum, bf16x32 a, bf16x32 b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

/// Neighbours in memory as 16 pairs, with zeros from the n-th element on.
XLA_DOT_INLINE bf16x32 load_pairs(const float* p, std::int64_t n) {
  if (n >= 32) return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(p + 16), _mm512_loadu_ps(p));
  const __m512 high = _mm512_maskz_loadu_ps(first_16(n - 16), p + 16);
  return (__m512i)_mm512_cvtne2ps_pbh(high, _mm512_maskz_loadu_ps(first_16(n), p));
}
XLA_DOT_INLINE bf16x32 load_pairs(const bfloat16* p, std::int64_t n) {
  if (n >= 32) return _mm512_loadu_si512(p);
  return _mm512_maskz_loadu_epi16(first_32(n), p);
}

/// n pairs of the elements at p and, if there is a `second`, those at q; then zeros.
XLA_DOT_INLINE bf16x32 zip_pairs(const float* p, const float* q, std::int64_t n, bool second) {
  const __m512 low = _mm512_maskz_loadu_ps(first_16(n), p);
  const __m512 high = _mm512_maskz_loadu_ps(first_16(second ? n : 0), q);
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}
XLA_DOT_INLINE bf16x32 zip_pairs(const bfloat16* p, const bfloat16* q, std::int64_t n,
                                 bool second) {
  const __m256i low = _mm256_maskz_loadu_epi16(first_16(n), p);
  const __m256i high = _mm256_maskz_loadu_epi16(first_16(second ? n : 0), q);
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/// 16 x 16 pairs, transposed.
XLA_DOT_INLINE void transpose(bf16x32* r) {
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

/// The sums of all lanes of eight vectors, as eight floats at an address that is a multiple of 32:
/// the upper half of the lanes is added to the lower half until one lane is left.
XLA_DOT_INLINE void store_sums(float* to, const f32x16* x) {
  __m512 half[4], quarter[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    half[i] = _mm512_add_ps(_mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0x44),
                            _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0xee));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    quarter[i] = _mm512_add_ps(_mm512_shuffle_f32x4(half[2 * i], half[2 * i + 1], 0x88),
                               _mm512_shuffle_f32x4(half[2 * i], half[2 * i + 1], 0xdd));
  const __m512 two = _mm512_add_ps(_mm512_shuffle_ps(quarter[0], quarter[1], 0x44),
                                   _mm512_shuffle_ps(quarter[0], quarter[1], 0xee));
  const __m512 one =
      _mm512_add_ps(_mm512_shuffle_ps(two, two, 0x88), _mm512_shuffle_ps(two, two, 0xdd));
  const __m512i order = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 13, 9, 5, 1, 12, 8, 4, 0);
  _mm256_store_ps(to, _mm512_castps512_ps256(_mm512_permutexvar_ps(order, one)));
}

}  // namespace xla::kernel::bf16

#endif
