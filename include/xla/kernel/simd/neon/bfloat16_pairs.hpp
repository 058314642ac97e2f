// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pairs of bfloat16 in four vectors of NEON: rounding, loads of parts and the product of pairs. The
// instructions are assembly, because g++ inlines their intrinsics only where `-march` has them.

#include "xla/kernel/simd/bfloat16_code.hpp"
#if XLA_HAS_DOT && defined(__aarch64__)

#include <arm_neon.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "xla/shape/bfloat16.hpp"

namespace xla::kernel::bf16 {

using detail::bfloat16_pair;
struct f32x16 {
  float32x4_t v[4];
};
/// A pair in each 32 bits.
struct bf16x32 {
  uint32x4_t v[4];
};
using one_pair = uint32x4_t;   ///< the same in all of them
using mask16 = std::uint16_t;  ///< a bit for each lane

// Of 32 vectors, 16 hold sums. See the form of AVX-512.
constexpr int tile_rows = 4, tile_vectors = 1, small_m_sums = 4, sums_at_once = 4;
constexpr int steps_at_once = 2;

/// A mask of the first n lanes.
XLA_DOT_INLINE mask16 first_16(std::int64_t n) {
  return static_cast<mask16>(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1u);
}

XLA_DOT_INLINE f32x16 zero_floats() {
  const float32x4_t zero = vdupq_n_f32(0);
  return {{zero, zero, zero, zero}};
}
XLA_DOT_INLINE f32x16 load(const float* p) {
  return {{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}
/// Zeros in the lanes that the mask lacks.
XLA_DOT_INLINE f32x16 load(const float* p, mask16 lanes) {
  if (lanes == 0xffff) return load(p);
  float some[16] = {};
  for (int i = 0; i < 16; ++i)
    if (lanes >> i & 1) some[i] = p[i];
  return load(some);
}
XLA_DOT_INLINE void store(float* to, f32x16 x) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, x.v[i]);
}
XLA_DOT_INLINE void store(float* to, f32x16 x, mask16 lanes) {
  if (lanes == 0xffff) return store(to, x);
  float some[16];
  store(some, x);
  for (int i = 0; i < 16; ++i)
    if (lanes >> i & 1) to[i] = some[i];
}
XLA_DOT_INLINE f32x16 add(f32x16 a, f32x16 b) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) a.v[i] = vaddq_f32(a.v[i], b.v[i]);
  return a;
}

XLA_DOT_INLINE bf16x32 zero_pairs() {
  const uint32x4_t zero = vdupq_n_u32(0);
  return {{zero, zero, zero, zero}};
}
XLA_DOT_INLINE bf16x32 load(const bfloat16_pair* p) {
  return {{vld1q_u32(p), vld1q_u32(p + 4), vld1q_u32(p + 8), vld1q_u32(p + 12)}};
}
XLA_DOT_INLINE void store(bfloat16_pair* to, bf16x32 x) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1q_u32(to + 4 * i, x.v[i]);
}
/// Stores lanes 0 to 7 to `to` and, if `both`, the others to `to + half`.
XLA_DOT_INLINE void store_halves(bfloat16_pair* to, std::int64_t half, bool both, bf16x32 x) {
  vst1q_u32(to, x.v[0]);
  vst1q_u32(to + 4, x.v[1]);
  if (!both) return;
  vst1q_u32(to + half, x.v[2]);
  vst1q_u32(to + half + 4, x.v[3]);
}
/// One pair in every lane.
XLA_DOT_INLINE one_pair broadcast(bfloat16_pair pair) { return vdupq_n_u32(pair); }

/// sum += the products of the pairs of a and b: each pair's sum first, rounded to odd as the total
/// is.
XLA_DOT_INLINE void dot_accumulate(float32x4_t& sum, uint32x4_t a, uint32x4_t b) {
  asm("bfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
}
XLA_DOT_INLINE void dot_accumulate(f32x16& sum, one_pair a, bf16x32 b) {
  dot_accumulate(sum.v[0], a, b.v[0]);
  dot_accumulate(sum.v[1], a, b.v[1]);
  dot_accumulate(sum.v[2], a, b.v[2]);
  dot_accumulate(sum.v[3], a, b.v[3]);
}
XLA_DOT_INLINE void dot_accumulate(f32x16& sum, bf16x32 a, bf16x32 b) {
  dot_accumulate(sum.v[0], a.v[0], b.v[0]);
  dot_accumulate(sum.v[1], a.v[1], b.v[1]);
  dot_accumulate(sum.v[2], a.v[2], b.v[2]);
  dot_accumulate(sum.v[3], a.v[3], b.v[3]);
}

/// Eight floats as bfloat16.
XLA_DOT_INLINE uint16x8_t round_floats(float32x4_t low, float32x4_t high) {
  uint16x8_t to;
  asm("bfcvtn %0.4h, %1.4s" : "=w"(to) : "w"(low));
  asm("bfcvtn2 %0.8h, %1.4s" : "+w"(to) : "w"(high));
  return to;
}
XLA_DOT_INLINE uint16x8_t load_eight(const bfloat16* p) {
  return vld1q_u16(reinterpret_cast<const std::uint16_t*>(p));
}
XLA_DOT_INLINE uint16x8_t load_eight(const float* p) {
  return round_floats(vld1q_f32(p), vld1q_f32(p + 4));
}

/// Fewer than 32 neighbours in memory as pairs, then zeros.
template <class T>
XLA_DOT_CODE [[gnu::noinline]] bf16x32 load_first_pairs(const T* p, std::int64_t n) {
  T some[32];
  std::fill(std::copy_n(p, std::max<std::int64_t>(n, 0), some), some + 32, T(0.f));
  bf16x32 to;
  for (int i = 0; i < 4; ++i) to.v[i] = vreinterpretq_u32_u16(load_eight(some + 8 * i));
  return to;
}
/// Neighbours in memory as 16 pairs, with zeros from the n-th element on.
template <class T>
XLA_DOT_INLINE bf16x32 load_pairs(const T* p, std::int64_t n) {
  if (n < 32) return load_first_pairs(p, n);
  return {{vreinterpretq_u32_u16(load_eight(p)), vreinterpretq_u32_u16(load_eight(p + 8)),
           vreinterpretq_u32_u16(load_eight(p + 16)), vreinterpretq_u32_u16(load_eight(p + 24))}};
}

/// n pairs of the elements at p and, if there is a `second`, those at q; then zeros.
template <class T>
XLA_DOT_INLINE bf16x32 zip_pairs(const T* p, const T* q, std::int64_t n, bool second) {
  T some[2][16];
  if (n < 16 || !second) {
    const auto count = std::clamp<std::int64_t>(n, 0, 16);
    std::fill(std::copy_n(p, count, some[0]), some[0] + 16, T(0.f));
    std::fill(std::copy_n(q, second ? count : 0, some[1]), some[1] + 16, T(0.f));
    p = some[0];
    q = some[1];
  }
  bf16x32 to;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const uint16x8_t low = load_eight(p + 8 * i), high = load_eight(q + 8 * i);
    to.v[2 * i] = vreinterpretq_u32_u16(vzip1q_u16(low, high));
    to.v[2 * i + 1] = vreinterpretq_u32_u16(vzip2q_u16(low, high));
  }
  return to;
}

/// The block of four rows and one vector, transposed.
XLA_DOT_INLINE void transpose_block(const bf16x32* r, int at, uint32x4_t (&to)[4]) {
  const uint32x4_t a = r[0].v[at], b = r[1].v[at], c = r[2].v[at], d = r[3].v[at];
  const uint64x2_t even = vreinterpretq_u64_u32(vtrn1q_u32(a, b));
  const uint64x2_t odd = vreinterpretq_u64_u32(vtrn2q_u32(a, b));
  const uint64x2_t even2 = vreinterpretq_u64_u32(vtrn1q_u32(c, d));
  const uint64x2_t odd2 = vreinterpretq_u64_u32(vtrn2q_u32(c, d));
  to[0] = vreinterpretq_u32_u64(vtrn1q_u64(even, even2));
  to[1] = vreinterpretq_u32_u64(vtrn1q_u64(odd, odd2));
  to[2] = vreinterpretq_u32_u64(vtrn2q_u64(even, even2));
  to[3] = vreinterpretq_u32_u64(vtrn2q_u64(odd, odd2));
}
/// 16 x 16 pairs, transposed: blocks change places with those across the diagonal.
XLA_DOT_INLINE void transpose(bf16x32* r) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j <= i; ++j) {
      uint32x4_t below[4], above[4];
      transpose_block(r + 4 * i, j, below);
      transpose_block(r + 4 * j, i, above);
      for (int k = 0; k < 4; ++k) {
        r[4 * i + k].v[j] = above[k];
        r[4 * j + k].v[i] = below[k];
      }
    }
}

/// The sums of all lanes of four vectors: the upper half of the lanes is added to the lower half
/// until one lane is left.
XLA_DOT_INLINE void store_sums(float* to, const f32x16* x) {
  float32x4_t four[4], two[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    four[i] = vaddq_f32(vaddq_f32(x[i].v[0], x[i].v[2]), vaddq_f32(x[i].v[1], x[i].v[3]));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const float64x2_t a = vreinterpretq_f64_f32(four[2 * i]);
    const float64x2_t b = vreinterpretq_f64_f32(four[2 * i + 1]);
    two[i] =
        vaddq_f32(vreinterpretq_f32_f64(vtrn1q_f64(a, b)), vreinterpretq_f32_f64(vtrn2q_f64(a, b)));
  }
  vst1q_f32(to, vpaddq_f32(two[0], two[1]));
}

}  // namespace xla::kernel::bf16

#endif
