// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions of SSE2 that kernels need and Eigen lacks, or computes inexactly; packet.hpp and
// mask.hpp document them for every instruction set.

#include <cstdint>

#include "xla/kernel/simd/eigen_packets.hpp"
#if defined(EIGEN_VECTORIZE_SSE)

namespace xla::kernel::isa {

// Loads from this array, at an offset before the end of the ones, give all masks of first lanes.
alignas(64) inline constexpr std::int32_t ones_then_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

// Not inline for floats: a program stores and loads ends of rows in many places, and each inlined
// copy would be larger than a call.
[[gnu::noinline]] inline void store_first(float* to, __m128 x, std::int64_t n) {
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

#if !defined(EIGEN_VECTORIZE_AVX)

inline __m128 sqrt(__m128 x) { return _mm_sqrt_ps(x); }
inline __m128d sqrt(__m128d x) { return _mm_sqrt_pd(x); }

inline __m128 larger(__m128 a, __m128 b) { return _mm_max_ps(b, a); }
inline __m128d larger(__m128d a, __m128d b) { return _mm_max_pd(b, a); }
inline __m128 smaller(__m128 a, __m128 b) { return _mm_min_ps(b, a); }
inline __m128d smaller(__m128d a, __m128d b) { return _mm_min_pd(b, a); }

inline __m128 unordered(__m128 a, __m128 b) { return _mm_cmpunord_ps(a, b); }
inline __m128d unordered(__m128d a, __m128d b) { return _mm_cmpunord_pd(a, b); }

[[gnu::noinline]] inline __m128 load_first(const float* from, std::int64_t n) {
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

}  // namespace xla::kernel::isa

#endif
