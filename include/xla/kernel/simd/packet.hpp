// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packets: the content of one vector register, and operations that Eigen lacks, or computes
// inexactly. isa.hpp implements them for each instruction set.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "xla/base/compiler.hpp"
#include "xla/kernel/simd/isa.hpp"

namespace xla::kernel {

namespace simd = Eigen::internal;

/// True for element types that are computed in packets.
template <class T>
inline constexpr bool is_vector =
    (std::is_same_v<T, float> || std::is_same_v<T, double>)&&simd::packet_traits<T>::Vectorizable;

namespace detail {

using index_t = std::int64_t;  // of kernels' loops

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

/// The content of a kernel's register: a SIMD packet, or one number for integers and bool.
template <class T>
using packet = typename detail::packet_of<T, is_vector<T>>::type;
template <class T>
inline constexpr int lanes = detail::packet_of<T, is_vector<T>>::lanes;
/// The size of an element in bytes, in the type that indices have.
template <class T>
inline constexpr std::int64_t element_size = sizeof(T);

/// The square root, correctly rounded (IEEE 754): some of Eigen's on x86 are approximations that
/// give NaN for infinity.
template <class T>
inline packet<T> exact_sqrt(packet<T> x) {
  return isa::sqrt(x);
}

/// Whether the instruction set scales by powers of two; then NaN times an infinite power stays NaN.
template <class T>
inline constexpr bool scales_by_power =
#ifdef XLA_ISA_SCALES_BY_POWER
    true;
#else
    false;
#endif
/// x 2^n for whole n, which may exceed the exponents of T.
template <class T>
inline packet<T> scale_by_power(packet<T> x, packet<T> n) {
#ifdef XLA_ISA_SCALES_BY_POWER
  return isa::scale_by_power(x, n);
#else
  return simd::pldexp(x, n);
#endif
}

/// Whether the instruction set splits numbers into mantissa and exponent.
template <class T>
inline constexpr bool has_parts =
#ifdef XLA_ISA_SPLITS
    std::is_same_v<T, float>;
#else
    false;
#endif
/// x = mantissa 2^exponent, with a mantissa in [3/4, 3/2). The exponent is infinite for zero and
/// infinity, the mantissa NaN for negative numbers.
template <class T>
struct number_parts {
  packet<T> mantissa, exponent;
  explicit number_parts([[maybe_unused]] packet<T> x) {
#ifdef XLA_ISA_SPLITS
    isa::split(x, mantissa, exponent);
#endif
  }
};

/// b if it is larger than a, else a; so a if one of them is NaN.
template <class T>
inline packet<T> larger(packet<T> a, packet<T> b) {
  return isa::larger(a, b);
}
/// b if it is smaller than a, else a.
template <class T>
inline packet<T> smaller(packet<T> a, packet<T> b) {
  return isa::smaller(a, b);
}

namespace detail {
/// The lanes of x with these numbers.
template <class T, std::size_t... From>
inline packet<T> shuffle(packet<T> x) {
  if constexpr (sizeof...(From) == 1) return x;
#if XLA_GNU_EXTENSIONS
  else return __builtin_shufflevector(x, x, From...);
#else
  T all[sizeof...(From)];
  simd::pstoreu(all, x);
  const T moved[] = {all[From]...};
  return simd::ploadu<packet<T>>(moved);
#endif
}
template <class T, int Distance, std::size_t... I>
inline packet<T> exchange(packet<T> x, std::index_sequence<I...>) {
  return shuffle<T, (I ^ Distance)...>(x);
}
template <class T, std::size_t... I>
inline packet<T> spread_first(packet<T> x, std::index_sequence<I...>) {
  return shuffle<T, (I * 0)...>(x);
}
template <class T>
using lane_numbers = std::make_index_sequence<static_cast<std::size_t>(lanes<T>)>;
}  // namespace detail

/// Lane i of the result is lane i ^ Distance of x.
template <class T, int Distance>
inline packet<T> exchange_lanes(packet<T> x) {
  return detail::exchange<T, Distance>(x, detail::lane_numbers<T>{});
}
/// The first lane of x in every lane.
template <class T>
inline packet<T> spread_first(packet<T> x) {
  return detail::spread_first<T>(x, detail::lane_numbers<T>{});
}

/// True if one instruction loads a part of a packet.
inline constexpr bool loads_parts =
#if defined(EIGEN_VECTORIZE_AVX)
    true;
#else
    false;
#endif

/// Loads the first n lanes, zeros in the others; reads nothing beyond them. n < lanes.
template <class T>
inline packet<T> load_part(const T* from, std::int64_t n) {
  return isa::load_first(from, n);
}
/// Stores the first n lanes; writes nothing beyond them. n < lanes.
template <class T>
inline void store_part(T* to, const packet<T>& x, std::int64_t n) {
  isa::store_first(to, x, n);
}
/// x with all lanes from n on replaced; n is less than lanes.
template <class T>
inline packet<T> replace_rest(const packet<T>& x, T rest, std::int64_t n) {
  return isa::keep_first(x, rest, n);
}

}  // namespace xla::kernel
