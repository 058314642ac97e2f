// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of packet.hpp and mask.hpp, written with Eigen's: for packets of instruction sets
// without a folder of their own, and for single numbers if nothing is vectorised.

#include <cstdint>

#include "xla/kernel/simd/eigen_packets.hpp"

namespace xla::kernel::isa {

template <class P>
inline P sqrt(const P& x) {
  return Eigen::internal::psqrt(x);
}
template <class P>
inline P larger(const P& a, const P& b) {
  return Eigen::internal::pselect(Eigen::internal::pcmp_lt(a, b), b, a);
}
template <class P>
inline P smaller(const P& a, const P& b) {
  return Eigen::internal::pselect(Eigen::internal::pcmp_lt(b, a), b, a);
}
template <class P>
inline P unordered(const P& a, const P& b) {
  using namespace Eigen::internal;
  return pandnot(ptrue(a), pand(pcmp_eq(a, a), pcmp_eq(b, b)));
}

template <class T, class Traits = Eigen::internal::packet_traits<T>>
inline typename Traits::type load_first(const T* from, std::int64_t n) {
  alignas(64) T buffer[Traits::size] = {};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = from[i];
  return Eigen::internal::pload<typename Traits::type>(buffer);
}
template <class T, class P>
inline void store_first(T* to, const P& x, std::int64_t n) {
  alignas(64) T buffer[sizeof(P) / sizeof(T)];
  Eigen::internal::pstore(buffer, x);
  for (std::int64_t i = 0; i < n; ++i) to[i] = buffer[i];
}
template <class P, class T>
inline P keep_first(const P& x, T rest, std::int64_t n) {
  constexpr std::int64_t lanes = sizeof(P) / sizeof(T);
  alignas(64) T buffer[lanes];
  Eigen::internal::pstore(buffer, x);
  for (std::int64_t i = n; i < lanes; ++i) buffer[i] = rest;
  return Eigen::internal::pload<P>(buffer);
}

}  // namespace xla::kernel::isa
