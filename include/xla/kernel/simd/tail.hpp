// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/kernel/simd/packet.hpp"

// The last elements of a row, fewer than lanes. They do not go through memory where the instruction
// set allows it. AVX's masked store is not used: it is slow on some machines.

namespace xla::kernel {

namespace detail {

#if defined(EIGEN_VECTORIZE_AVX512)

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

#elif defined(EIGEN_VECTORIZE_SSE)

// From the end of the ones on these are all masks of first lanes.
alignas(64) inline constexpr std::int32_t ones_then_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

inline void store_first(float* to, __m128 x, std::int64_t n) {
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(to), x);
    x = _mm_movehl_ps(x, x);
    to += 2;
  }
  if (n & 1) _mm_store_ss(to, x);
}
inline void store_first(double* to, __m128d x, std::int64_t n) {
  if (n & 1) _mm_store_sd(to, x);
}

#if defined(EIGEN_VECTORIZE_AVX)

inline __m256i first_lanes(std::int64_t bytes) {
  const char* end = reinterpret_cast<const char*>(ones_then_zeros) + 32;
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(end - bytes));
}
inline __m256 load_first(const float* from, std::int64_t n) {
  return _mm256_maskload_ps(from, first_lanes(4 * n));
}
inline __m256d load_first(const double* from, std::int64_t n) {
  return _mm256_maskload_pd(from, first_lanes(8 * n));
}
inline void store_first(float* to, __m256 x, std::int64_t n) {
  __m128 half = _mm256_castps256_ps128(x);
  if (n & 4) {
    _mm_storeu_ps(to, half);
    half = _mm256_extractf128_ps(x, 1);
    to += 4;
  }
  store_first(to, half, n);
}
inline void store_first(double* to, __m256d x, std::int64_t n) {
  __m128d half = _mm256_castpd256_pd128(x);
  if (n & 2) {
    _mm_storeu_pd(to, half);
    half = _mm256_extractf128_pd(x, 1);
    to += 2;
  }
  store_first(to, half, n);
}
inline __m256 keep_first(__m256 x, float rest, std::int64_t n) {
  return _mm256_blendv_ps(_mm256_set1_ps(rest), x, _mm256_castsi256_ps(first_lanes(4 * n)));
}
inline __m256d keep_first(__m256d x, double rest, std::int64_t n) {
  return _mm256_blendv_pd(_mm256_set1_pd(rest), x, _mm256_castsi256_pd(first_lanes(8 * n)));
}

#else

inline __m128 load_first(const float* from, std::int64_t n) {
  if (n == 1) return _mm_load_ss(from);
  if (n == 0) return _mm_setzero_ps();
  const __m128 two = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  return n == 2 ? two : _mm_movelh_ps(two, _mm_load_ss(from + 2));
}
inline __m128d load_first(const double* from, std::int64_t n) {
  return n == 0 ? _mm_setzero_pd() : _mm_load_sd(from);
}
inline __m128 keep_first(__m128 x, float rest, std::int64_t n) {
  const char* end = reinterpret_cast<const char*>(ones_then_zeros) + 32;
  const __m128 keep = _mm_loadu_ps(reinterpret_cast<const float*>(end - 4 * n));
  return _mm_or_ps(_mm_and_ps(keep, x), _mm_andnot_ps(keep, _mm_set1_ps(rest)));
}
inline __m128d keep_first(__m128d x, double rest, std::int64_t n) {
  return n == 0 ? _mm_set1_pd(rest) : _mm_unpacklo_pd(x, _mm_set1_pd(rest));
}

#endif
#else

template <class T>
inline packet<T> load_first(const T* from, std::int64_t n) {
  alignas(64) T buffer[lanes<T>] = {};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = from[i];
  return simd::pload<packet<T>>(buffer);
}
template <class T>
inline void store_first(T* to, const packet<T>& x, std::int64_t n) {
  alignas(64) T buffer[lanes<T>];
  simd::pstore(buffer, x);
  for (std::int64_t i = 0; i < n; ++i) to[i] = buffer[i];
}
template <class T>
inline packet<T> keep_first(const packet<T>& x, T rest, std::int64_t n) {
  alignas(64) T buffer[lanes<T>];
  simd::pstore(buffer, x);
  for (std::int64_t i = n; i < lanes<T>; ++i) buffer[i] = rest;
  return simd::pload<packet<T>>(buffer);
}

#endif

}  // namespace detail

/// True where a part of a packet is loaded by one instruction.
inline constexpr bool loads_parts =
#if defined(EIGEN_VECTORIZE_AVX)
    true;
#else
    false;
#endif

/// The first n lanes from memory, the others 0; nothing beyond them is read. n < lanes.
template <class T>
inline packet<T> load_part(const T* from, std::int64_t n) {
  return detail::load_first(from, n);
}
/// The first n lanes to memory; nothing beyond them is written. n < lanes.
template <class T>
inline void store_part(T* to, const packet<T>& x, std::int64_t n) {
  detail::store_first(to, x, n);
}
/// x with all lanes from n on replaced; n is less than lanes.
template <class T>
inline packet<T> replace_rest(const packet<T>& x, T rest, std::int64_t n) {
  return detail::keep_first(x, rest, n);
}

}  // namespace xla::kernel
