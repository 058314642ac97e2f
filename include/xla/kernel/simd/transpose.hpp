// SPDX-License-Identifier: Apache-2.0
#pragma once

// Transposes squares of vectors in registers. Packing of products and transposed copies use it.

#include <cstdint>

#include "xla/kernel/simd/packet.hpp"

namespace xla::kernel::detail {

#if defined(__GNUC__) && !defined(__clang__)
// A packet as a template argument loses attributes that nothing here relies on.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

/// As many vectors as each has elements.
template <class T>
using square = simd::PacketBlock<packet<T>, lanes<T>>;

template <class T>
inline void transpose(square<T>& block) {
  simd::ptranspose(block);
}
#ifdef XLA_ISA_TRANSPOSES
template <>
[[gnu::always_inline]] inline void transpose<float>(square<float>& block) {
  isa::transpose(block.packet);
}
#endif

/// Transposes `count` columns of b, each contiguous along k, into one vector of a panel.
template <class T>
void pack_columns(T* to, index_t step, const T* b, index_t b_column, index_t depth, index_t count) {
  using vector = packet<T>;
  constexpr int width = lanes<T>;
  index_t k = 0;
  for (; k + width <= depth; k += width) {
    square<T> block;
#pragma GCC unroll 16
    for (int q = 0; q < width; ++q)
      block.packet[q] =
          q < count ? simd::ploadu<vector>(b + q * b_column + k) : simd::pset1<vector>(T{0});
    transpose<T>(block);
#pragma GCC unroll 16
    for (int q = 0; q < width; ++q) simd::pstoreu(to + (k + q) * step, block.packet[q]);
  }
  for (; k < depth; ++k)
    for (int q = 0; q < width; ++q) to[k * step + q] = q < count ? b[q * b_column + k] : T{0};
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace xla::kernel::detail
