// SPDX-License-Identifier: Apache-2.0
#pragma once

// Masks: results of comparisons in every lane, and selection by them, for each instruction set.

#include "xla/kernel/simd/packet.hpp"

namespace xla::kernel {

/// Whether comparisons of packets of T give mask registers, one bit per lane.
template <class T>
inline constexpr bool has_mask_register =
#ifdef XLA_ISA_MASK_REGISTERS
    is_vector<T>;
#else
    false;
#endif

namespace detail {
template <class T, bool Register>
struct mask_bits_of {
  using type = packet<T>;
};
template <class T>
struct mask_bits_of<T, true> {
  using type = std::conditional_t<sizeof(T) == 4, std::uint16_t, std::uint8_t>;
};
}  // namespace detail

/// The result of a comparison in every lane: a mask register, a packet with all bits of a lane set
/// or none, or one number.
template <class T>
using mask_bits = typename detail::mask_bits_of<T, has_mask_register<T>>::type;

namespace detail {

template <class T>
inline mask_bits<T> is_less(packet<T> a, packet<T> b) {
#ifdef XLA_ISA_MASK_REGISTERS
  return isa::less(a, b);
#else
  return simd::pcmp_lt(a, b);
#endif
}
template <class T>
inline mask_bits<T> is_less_equal(packet<T> a, packet<T> b) {
#ifdef XLA_ISA_MASK_REGISTERS
  return isa::less_equal(a, b);
#else
  return simd::pcmp_le(a, b);
#endif
}
template <class T>
inline mask_bits<T> is_equal(packet<T> a, packet<T> b) {
#ifdef XLA_ISA_MASK_REGISTERS
  return isa::equal(a, b);
#else
  return simd::pcmp_eq(a, b);
#endif
}
/// Where a or b is NaN.
template <class T>
inline mask_bits<T> is_unordered(packet<T> a, packet<T> b) {
  return isa::unordered(a, b);
}
/// a where t holds, else b.
template <class T>
inline packet<T> select(mask_bits<T> t, packet<T> a, packet<T> b) {
#ifdef XLA_ISA_MASK_REGISTERS
  return isa::select(t, a, b);
#else
  return simd::pselect(t, a, b);
#endif
}

/// The same bool in every lane.
template <class T>
inline mask_bits<T> splat_mask(bool b) {
  if constexpr (has_mask_register<T>) return static_cast<mask_bits<T>>(b ? -1 : 0);
  else if constexpr (is_vector<T>)
    return is_less<T>(simd::pset1<packet<T>>(T(0)), simd::pset1<packet<T>>(T(b)));
  else return static_cast<T>(b);
}

/// The mask of n bools in memory, n <= lanes; false in the other lanes.
template <class T>
inline mask_bits<T> load_mask(const bool* from, index_t n) {
#ifdef XLA_ISA_MASK_REGISTERS
  return static_cast<mask_bits<T>>(isa::load_bools(from, n));
#else
  constexpr int w = lanes<T>;
  alignas(64) T buffer[w] = {};
  if (n == w)
    for (int i = 0; i < w; ++i) buffer[i] = T(from[i]);
  else
    for (int i = 0; i < n; ++i) buffer[i] = T(from[i]);
  return is_less<T>(simd::pset1<packet<T>>(T(0)), simd::pload<packet<T>>(buffer));
#endif
}
/// The mask of the first n lanes to memory, as bools.
template <class T>
inline void store_mask(bool* to, mask_bits<T> t, index_t n) {
#ifdef XLA_ISA_MASK_REGISTERS
  isa::store_bools(to, t, n);
#else
  alignas(64) T buffer[lanes<T>];
  simd::pstore(buffer, select<T>(t, simd::pset1<packet<T>>(T(1)), simd::pset1<packet<T>>(T(0))));
  for (int i = 0; i < n; ++i) to[i] = buffer[i] != T(0);
#endif
}

}  // namespace detail

/// a in one lane, b in the others.
template <class T>
#ifndef EIGEN_VECTORIZE_AVX512
[[gnu::noinline]]
#endif
inline packet<T>
choose_lane(std::int64_t lane, packet<T> a, packet<T> b) {
  if constexpr (lanes<T> == 1) return a;
  else if constexpr (has_mask_register<T>)
    return detail::select<T>(static_cast<mask_bits<T>>(1u << lane), a, b);
  else {
    alignas(64) T from[lanes<T>], to[lanes<T>];
    simd::pstore(from, a);
    simd::pstore(to, b);
    to[lane] = from[lane];
    return simd::pload<packet<T>>(to);
  }
}

}  // namespace xla::kernel
