// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include <xla/kernel/gemm_few.hpp>
#include <xla/kernel/gemm_left.hpp>
#include <xla/kernel/gemm_right.hpp>
#include <xla/shape/bfloat16.hpp>

// Operands that are read as bfloat16 and multiplied as floats: what products with few rows load,
// and forms of a and b for the tiles of floats.

namespace xla::kernel::detail {

/// A float in memory that is read as the nearest bfloat16.
struct rounded_float {
  float number;
  operator float() const { return bfloat16{number}; }
};

/// The numbers of a packet as words, and bfloat16 of as many.
using lane_words [[gnu::vector_size(sizeof(packet<float>))]] = std::uint32_t;
using lane_halves [[gnu::vector_size(sizeof(packet<float>) / 2)]] = std::uint16_t;

inline packet<float> as_packet(lane_words u) {
  packet<float> x;
  std::memcpy(&x, &u, sizeof x);
  return x;
}
/// Every lane as the nearest bfloat16, ties to the even one; NaN stays NaN.
inline packet<float> round_lanes(packet<float> x) {
#if defined(EIGEN_VECTORIZE_AVX512)
  const __m512i u = _mm512_castps_si512(x);
  const __m512i bit = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i near = _mm512_add_epi32(u, _mm512_add_epi32(bit, _mm512_set1_epi32(0x7fff)));
  const __m512i all = _mm512_mask_or_epi32(near, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), u,
                                           _mm512_set1_epi32(0x400000));
  return _mm512_castsi512_ps(_mm512_and_si512(all, _mm512_set1_epi32(-0x10000)));
#else
  lane_words u;
  std::memcpy(&u, &x, sizeof u);
  const lane_words nan = (lane_words)((u & 0x7fffffffu) > 0x7f800000u);
  const lane_words near = u + (0x7fffu + (u >> 16 & 1u));
  return as_packet(((nan & (u | 0x400000u)) | (~nan & near)) & 0xffff0000u);
#endif
}
/// The first n numbers, at most a packet; the others are 0.
inline packet<float> widen_lanes(const bfloat16* p, std::size_t n) {
  lane_halves h{};
  std::memcpy(&h, p, n * sizeof *p);
  return as_packet(__builtin_convertvector(h, lane_words) << 16);
}

template <>
struct few_elements<rounded_float> {
  static packet<float> load(const rounded_float* p) {
    return round_lanes(simd::ploadu<packet<float>>(&p->number));
  }
  static packet<float> load_first(const rounded_float* p, index_t n) {
    return round_lanes(load_part<float>(&p->number, n));
  }
};
template <>
struct few_elements<bfloat16> {
  static packet<float> load(const bfloat16* p) {
    return widen_lanes(p, static_cast<std::size_t>(lanes<float>));
  }
  static packet<float> load_first(const bfloat16* p, index_t n) {
    return widen_lanes(p, static_cast<std::size_t>(n));
  }
};

/// Rounds floats; `to` may be where they lie.
template <class T>
void round_all(const T* from, T* to, index_t count) {
  index_t i = 0;
  if constexpr (is_vector<T>)
    for (; i + lanes<T> <= count; i += lanes<T>)
      simd::pstoreu(to + i, round_lanes(simd::ploadu<packet<T>>(from + i)));
  for (; i < count; ++i) to[i] = bfloat16{from[i]};
}

/// A left operand of floats or bfloat16, packed as rounded floats.
template <class View>
struct rounded_left {
  using plain = strided_left<tile<float>, View>;
  plain as_is;

  void pack(float* to, index_t next, index_t row, index_t k, index_t rows, index_t depth) const {
    constexpr index_t unit = tile<float>::rows;
    as_is.pack(to, next, row, k, rows, depth);
    if constexpr (plain::same)
      for (index_t i = 0; i < rows; i += unit)
        round_all(to + i / unit * next, to + i / unit * next, depth * unit);
  }
  auto ahead(range rows, range ks, index_t shares) const { return as_is.ahead(rows, ks, shares); }
  static constexpr index_t grain() { return plain::grain(); }
};

/// A right operand, likewise.
template <class View>
struct rounded_right {
  using plain = strided_right<tile<float>, View>;
  plain as_is;

  void pack(float* to, index_t k, index_t column, index_t depth, index_t columns) const {
    as_is.pack(to, k, column, depth, columns);
    if constexpr (plain::same) round_all(to, to, depth * round_up(columns, lanes<float>));
  }
};

}  // namespace xla::kernel::detail
