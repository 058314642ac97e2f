// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one gate to Eigen's packets. g++ 12 sees uninitialised registers in the AVX-512 intrinsics;
// only around the include can that be silenced.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#include <cstdint>
#include <type_traits>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace xla::kernel {

namespace simd = Eigen::internal;

/// True for element types that are computed several at a time.
template <class T>
inline constexpr bool is_vector =
    (std::is_same_v<T, float> || std::is_same_v<T, double>)&&simd::packet_traits<T>::Vectorizable;

namespace detail {
template <class T, bool Vector>
struct packet_of {
  using type = T;
  static constexpr int lanes = 1;
};
template <class T>
struct packet_of<T, true> {
  using type = typename simd::packet_traits<T>::type;
  static constexpr int lanes = simd::packet_traits<T>::size;
};
}  // namespace detail

/// What a kernel holds in one register: a SIMD packet, or one number for integers and bool.
template <class T>
using packet = typename detail::packet_of<T, is_vector<T>>::type;
template <class T>
inline constexpr int lanes = detail::packet_of<T, is_vector<T>>::lanes;

/// The square root, rounded as IEEE 754 says: some of Eigen's own on x86 are approximations that
/// make NaN of infinity.
template <class T>
inline packet<T> exact_sqrt(packet<T> x) {
#if defined(EIGEN_VECTORIZE_AVX512)
  if constexpr (sizeof(T) == 4) return _mm512_sqrt_ps(x);
  if constexpr (sizeof(T) == 8) return _mm512_sqrt_pd(x);
#elif defined(EIGEN_VECTORIZE_AVX)
  if constexpr (sizeof(T) == 4) return _mm256_sqrt_ps(x);
  if constexpr (sizeof(T) == 8) return _mm256_sqrt_pd(x);
#elif defined(EIGEN_VECTORIZE_SSE)
  if constexpr (sizeof(T) == 4) return _mm_sqrt_ps(x);
  if constexpr (sizeof(T) == 8) return _mm_sqrt_pd(x);
#endif
  return simd::psqrt(x);
}

/// x 2^n for whole n, which may be beyond the exponents of T.
template <class T>
inline packet<T> scale_by_power(packet<T> x, packet<T> n) {
#if defined(EIGEN_VECTORIZE_AVX512)
  if constexpr (sizeof(T) == 4) return _mm512_scalef_ps(x, n);
  if constexpr (sizeof(T) == 8) return _mm512_scalef_pd(x, n);
#endif
  return simd::pldexp(x, n);
}

/// The first n lanes from memory, the others 0; nothing beyond them is read.
template <class T>
inline packet<T> load_part(const T* from, std::int64_t n) {
  alignas(64) T buffer[lanes<T>] = {};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = from[i];
  return simd::pload<packet<T>>(buffer);
}
/// The first n lanes to memory; nothing beyond them is written.
template <class T>
inline void store_part(T* to, const packet<T>& x, std::int64_t n) {
  alignas(64) T buffer[lanes<T>];
  simd::pstore(buffer, x);
  for (std::int64_t i = 0; i < n; ++i) to[i] = buffer[i];
}
/// x with all lanes from n on replaced.
template <class T>
inline packet<T> replace_rest(const packet<T>& x, T rest, std::int64_t n) {
  alignas(64) T buffer[lanes<T>];
  simd::pstore(buffer, x);
  for (std::int64_t i = n; i < lanes<T>; ++i) buffer[i] = rest;
  return simd::pload<packet<T>>(buffer);
}
#ifdef EIGEN_VECTORIZE_AVX512
namespace detail {
inline __mmask16 first_lanes(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
}  // namespace detail
template <>
inline packet<float> load_part<float>(const float* from, std::int64_t n) {
  return _mm512_maskz_loadu_ps(detail::first_lanes(n), from);
}
template <>
inline void store_part<float>(float* to, const packet<float>& x, std::int64_t n) {
  _mm512_mask_storeu_ps(to, detail::first_lanes(n), x);
}
template <>
inline packet<float> replace_rest<float>(const packet<float>& x, float rest, std::int64_t n) {
  return _mm512_mask_blend_ps(detail::first_lanes(n), _mm512_set1_ps(rest), x);
}
#endif

}  // namespace xla::kernel
