// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions of AVX-512 that kernels need and Eigen lacks, or computes inexactly. packet.hpp,
// mask.hpp, transpose.hpp and bfloat16_packet.hpp document them for every instruction set.

#include <cstdint>
#include <type_traits>

#include "xla/kernel/simd/eigen_packets.hpp"
#if defined(EIGEN_VECTORIZE_AVX512)

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define XLA_ISA_MASK_REGISTERS
#endif

namespace xla::kernel::isa {

inline __m512 sqrt(__m512 x) { return _mm512_sqrt_ps(x); }
inline __m512d sqrt(__m512d x) { return _mm512_sqrt_pd(x); }

inline __m512 larger(__m512 a, __m512 b) { return _mm512_max_ps(b, a); }
inline __m512d larger(__m512d a, __m512d b) { return _mm512_max_pd(b, a); }
inline __m512 smaller(__m512 a, __m512 b) { return _mm512_min_ps(b, a); }
inline __m512d smaller(__m512d a, __m512d b) { return _mm512_min_pd(b, a); }

#define XLA_ISA_SCALES_BY_POWER
inline __m512 scale_by_power(__m512 x, __m512 n) { return _mm512_scalef_ps(x, n); }
inline __m512d scale_by_power(__m512d x, __m512d n) { return _mm512_scalef_pd(x, n); }
#define XLA_ISA_SPLITS
inline void split(__m512 x, __m512& mantissa, __m512& exponent) {
  mantissa = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  exponent = _mm512_sub_ps(_mm512_getexp_ps(x), _mm512_getexp_ps(mantissa));
}

template <class T>
using first_lanes_type = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
template <class T>
inline first_lanes_type<T> first_lanes(std::int64_t n) {
  return static_cast<first_lanes_type<T>>((1u << n) - 1u);
}
inline __m512 load_first(const float* from, std::int64_t n) {
  return _mm512_maskz_loadu_ps(first_lanes<float>(n), from);
}
inline __m512d load_first(const double* from, std::int64_t n) {
  return _mm512_maskz_loadu_pd(first_lanes<double>(n), from);
}
inline void store_first(float* to, __m512 x, std::int64_t n) {
  _mm512_mask_storeu_ps(to, first_lanes<float>(n), x);
}
inline void store_first(double* to, __m512d x, std::int64_t n) {
  _mm512_mask_storeu_pd(to, first_lanes<double>(n), x);
}
inline __m512 keep_first(__m512 x, float rest, std::int64_t n) {
  return _mm512_mask_blend_ps(first_lanes<float>(n), _mm512_set1_ps(rest), x);
}
inline __m512d keep_first(__m512d x, double rest, std::int64_t n) {
  return _mm512_mask_blend_pd(first_lanes<double>(n), _mm512_set1_pd(rest), x);
}

#ifdef XLA_ISA_MASK_REGISTERS
inline std::uint16_t less(__m512 a, __m512 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline std::uint8_t less(__m512d a, __m512d b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
inline std::uint16_t less_equal(__m512 a, __m512 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
inline std::uint8_t less_equal(__m512d a, __m512d b) {
  return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ);
}
inline std::uint16_t equal(__m512 a, __m512 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline std::uint8_t equal(__m512d a, __m512d b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
inline std::uint16_t unordered(__m512 a, __m512 b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}
inline std::uint8_t unordered(__m512d a, __m512d b) {
  return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);
}
inline __m512 select(std::uint16_t t, __m512 a, __m512 b) { return _mm512_mask_blend_ps(t, b, a); }
inline __m512d select(std::uint8_t t, __m512d a, __m512d b) {
  return _mm512_mask_blend_pd(t, b, a);
}
inline std::uint16_t load_bools(const bool* from, std::int64_t n) {
  const __m128i bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << n) - 1u), from);
  return _mm_test_epi8_mask(bytes, bytes);
}
inline void store_bools(bool* to, std::uint16_t t, std::int64_t n) {
  _mm_mask_storeu_epi8(to, static_cast<__mmask16>((1u << n) - 1u), _mm_maskz_set1_epi8(t, 1));
}
#else
inline __m512 unordered(__m512 a, __m512 b) {
  return _mm512_castsi512_ps(_mm512_maskz_set1_epi32(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), -1));
}
inline __m512d unordered(__m512d a, __m512d b) {
  return _mm512_castsi512_pd(_mm512_maskz_set1_epi64(_mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q), -1));
}
#endif

#define XLA_ISA_TRANSPOSES
/// 16 vectors, in 64 shuffles: pairs, then quadruples within each quarter, then the quarters.
[[gnu::always_inline]] inline void transpose(__m512* packet) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 4) {
    const __m512* from = packet + i;
    const auto low = _mm512_castps_pd(_mm512_unpacklo_ps(from[0], from[1]));
    const auto high = _mm512_castps_pd(_mm512_unpackhi_ps(from[0], from[1]));
    const auto low2 = _mm512_castps_pd(_mm512_unpacklo_ps(from[2], from[3]));
    const auto high2 = _mm512_castps_pd(_mm512_unpackhi_ps(from[2], from[3]));
    t[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, low2));
    t[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, low2));
    t[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high, high2));
    t[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high, high2));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 even = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
    const __m512 odd = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    const __m512 even2 = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    const __m512 odd2 = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    packet[i] = _mm512_shuffle_f32x4(even, even2, 0x88);
    packet[i + 4] = _mm512_shuffle_f32x4(odd, odd2, 0x88);
    packet[i + 8] = _mm512_shuffle_f32x4(even, even2, 0xdd);
    packet[i + 12] = _mm512_shuffle_f32x4(odd, odd2, 0xdd);
  }
}

#define XLA_ISA_ROUNDS
inline __m512 round_to_bfloat16(__m512 x) {
  const __m512i u = _mm512_castps_si512(x);
  const __m512i bit = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i near = _mm512_add_epi32(u, _mm512_add_epi32(bit, _mm512_set1_epi32(0x7fff)));
  const __m512i all = _mm512_mask_or_epi32(near, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), u,
                                           _mm512_set1_epi32(0x400000));
  return _mm512_castsi512_ps(_mm512_and_si512(all, _mm512_set1_epi32(-0x10000)));
}
#if defined(__AVX512BF16__)
#define XLA_ISA_ROUNDS_NORMAL
/// One instruction, which flushes denormal numbers to 0.
inline __m512 round_normal_to_bfloat16(__m512 x) {
  const auto rounded = (__m256i)_mm512_cvtneps_pbh(x);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16));
}
#endif

#if defined(__AVX512DQ__)
#define XLA_ISA_HALF_VECTORS
/// Eight floats, in the lower half or in both.
inline __m512 load_half(const float* from, bool twice) {
  const __m256 half = _mm256_loadu_ps(from);
  return twice ? _mm512_maskz_broadcast_f32x8(0xffff, half) : _mm512_castps256_ps512(half);
}
/// The lower half of one and the upper half of another.
inline __m512 join_halves(__m512 lower, __m512 upper) {
  return _mm512_mask_blend_ps(0xff00, lower, upper);
}
/// The lower half of a * b + c.
inline __m512 multiply_add_half(__m512 a, __m512 b, __m512 c) {
  return _mm512_castps256_ps512(_mm256_fmadd_ps(
      _mm512_castps512_ps256(a), _mm512_castps512_ps256(b), _mm512_castps512_ps256(c)));
}
/// Stores the lower half, or adds it to the content unless it is the `first` time.
inline void store_half(float* to, __m512 x, bool first) {
  const __m256 half = _mm512_castps512_ps256(x);
  _mm256_storeu_ps(to, first ? half : _mm256_add_ps(_mm256_loadu_ps(to), half));
}
/// Stores each half to its address, or adds it to the content unless it is the `first` time.
inline void store_halves(float* lower, float* upper, __m512 x, bool first) {
  __m256 a = _mm512_castps512_ps256(x), b = _mm512_maskz_extractf32x8_ps(0xff, x, 1);
  if (!first) {
    a = _mm256_add_ps(_mm256_loadu_ps(lower), a);
    b = _mm256_add_ps(_mm256_loadu_ps(upper), b);
  }
  _mm256_storeu_ps(lower, a);
  _mm256_storeu_ps(upper, b);
}
#endif

}  // namespace xla::kernel::isa

#endif
