// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "xla/kernel/simd/packet.hpp"

// Transposes squares of vectors in registers. Packing of products and transposed copies use it.

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
#if defined(EIGEN_VECTORIZE_AVX512)
/// In 64 shuffles: pairs, then quadruples within each quarter, then the quarters.
template <>
inline void transpose<float>(square<float>& block) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 4) {
    const __m512* from = block.packet + i;
    const auto low = _mm512_castps_pd(_mm512_unpacklo_ps(from[0], from[1]));
    const auto high = _mm512_castps_pd(_mm512_unpackhi_ps(from[0], from[1]));
    const auto low2 = _mm512_castps_pd(_mm512_unpacklo_ps(from[2], from[3]));
    const auto high2 = _mm512_castps_pd(_mm512_unpackhi_ps(from[2], from[3]));
    t[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, low2));
    t[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, low2));
    t[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high, high2));
    t[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high, high2));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 even = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
    const __m512 odd = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    const __m512 even2 = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    const __m512 odd2 = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    block.packet[i] = _mm512_shuffle_f32x4(even, even2, 0x88);
    block.packet[i + 4] = _mm512_shuffle_f32x4(odd, odd2, 0x88);
    block.packet[i + 8] = _mm512_shuffle_f32x4(even, even2, 0xdd);
    block.packet[i + 12] = _mm512_shuffle_f32x4(odd, odd2, 0xdd);
  }
}
#endif

/// Transposes `count` columns of b, each contiguous along k, into one vector of a panel.
template <class T>
void pack_columns(T* to, std::int64_t step, const T* b, std::int64_t b_column, std::int64_t depth,
                  std::int64_t count) {
  using vector = packet<T>;
  constexpr int width = lanes<T>;
  std::int64_t k = 0;
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
