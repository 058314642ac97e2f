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

/// The square root, rounded as IEEE 754 says: Eigen's own for float is an approximation on x86 that
/// makes NaN of infinity.
template <class P>
inline P exact_sqrt(const P& x) {
  return simd::psqrt(x);
}
#ifdef EIGEN_VECTORIZE_SSE
inline simd::Packet4f exact_sqrt(const simd::Packet4f& x) { return _mm_sqrt_ps(x); }
#endif
#ifdef EIGEN_VECTORIZE_AVX
inline simd::Packet8f exact_sqrt(const simd::Packet8f& x) { return _mm256_sqrt_ps(x); }
#endif
#ifdef EIGEN_VECTORIZE_AVX512
inline simd::Packet16f exact_sqrt(const simd::Packet16f& x) { return _mm512_sqrt_ps(x); }
#endif

/// What a kernel holds in one register: a SIMD packet, or one number for integers and bool.
template <class T>
using packet = typename detail::packet_of<T, is_vector<T>>::type;
template <class T>
inline constexpr int lanes = detail::packet_of<T, is_vector<T>>::lanes;

}  // namespace xla::kernel
