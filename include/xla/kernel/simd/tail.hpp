// SPDX-License-Identifier: Apache-2.0
#pragma once

// The last elements of a row, fewer than lanes. They do not go through memory where the instruction
// set allows it.

#include "xla/kernel/simd/packet.hpp"

namespace xla::kernel {

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
  return isa::load_first(from, n);
}
/// The first n lanes to memory; nothing beyond them is written. n < lanes.
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
