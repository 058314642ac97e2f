// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions of AVX that kernels need and Eigen lacks, or computes inexactly; packet.hpp and
// mask.hpp document them for every instruction set. AVX's masked store is not used, because it is
// slow on some machines.

#include <cstdint>

#include "xla/kernel/simd/sse/packet.hpp"
#if defined(EIGEN_VECTORIZE_AVX)

namespace xla::kernel::isa {

inline __m256 sqrt(__m256 x) { return _mm256_sqrt_ps(x); }
inline __m256d sqrt(__m256d x) { return _mm256_sqrt_pd(x); }

inline __m256 larger(__m256 a, __m256 b) { return _mm256_max_ps(b, a); }
inline __m256d larger(__m256d a, __m256d b) { return _mm256_max_pd(b, a); }
inline __m256 smaller(__m256 a, __m256 b) { return _mm256_min_ps(b, a); }
inline __m256d smaller(__m256d a, __m256d b) { return _mm256_min_pd(b, a); }

inline __m256 unordered(__m256 a, __m256 b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
inline __m256d unordered(__m256d a, __m256d b) { return _mm256_cmp_pd(a, b, _CMP_UNORD_Q); }

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

}  // namespace xla::kernel::isa

#endif
