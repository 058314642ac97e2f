// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xla/kernel/gemm_few.hpp>
#include <xla/kernel/gemm_left.hpp>
#include <xla/kernel/gemm_right.hpp>
#include <xla/kernel/halves.hpp>

// Operands that are read as bfloat16 and multiplied as floats: what products with few rows load,
// and forms of a and b for the tiles of floats.

namespace xla::kernel::detail {

/// A float in memory that is read as the nearest bfloat16.
struct rounded_float {
  float number;
  operator float() const { return bfloat16{number}; }
};

/// An operand's lanes as bfloat16; what is denormal may become 0, as in other products.
inline packet<float> round_operand(packet<float> x) {
#if defined(EIGEN_VECTORIZE_AVX512) && defined(__AVX512BF16__)
  const auto halves = (__m256i)_mm512_cvtneps_pbh(x);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
#else
  return round_lanes(x);
#endif
}
/// Some of an operand; `to` may be where they lie.
inline void round_operand(const float* from, index_t count, float* to) {
  const index_t whole = is_vector<float> ? count / lanes<float> * lanes<float> : 0;
  for (index_t i = 0; i < whole; i += lanes<float>)
    simd::pstoreu(to + i, round_operand(simd::ploadu<packet<float>>(from + i)));
  round_all(from + whole, to + whole, count - whole);
}

template <>
struct few_elements<rounded_float> {
  static packet<float> load(const rounded_float* p) {
    return round_operand(simd::ploadu<packet<float>>(&p->number));
  }
  static packet<float> load_first(const rounded_float* p, index_t n) {
    return round_operand(load_part<float>(&p->number, n));
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
