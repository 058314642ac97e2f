// SPDX-License-Identifier: Apache-2.0
#pragma once

// The algorithm `fma`: operands that are read as bfloat16 and multiplied as floats, for small m and
// for the tile of floats. bfloat16.hpp chooses it.

#include <algorithm>
#include <utility>

#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/gemm/gemm.hpp"
#include "xla/kernel/simd/bfloat16_packet.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel::detail {

/// A float in memory that is read as the nearest bfloat16.
struct rounded_float {
  float number;
  operator float() const { return bfloat16{number}; }
};

/// An operand's lanes as bfloat16; denormal numbers may become 0, as in other products.
inline packet<float> round_operand(packet<float> x) {
#ifdef XLA_ISA_ROUNDS_NORMAL
  return isa::round_normal_to_bfloat16(x);
#else
  return round_lanes(x);
#endif
}
/// Rounds some elements of an operand; `to` may be their own address.
inline void round_operand(const float* from, index_t count, float* to) {
  const index_t whole = is_vector<float> ? count / lanes<float> * lanes<float> : 0;
  for (index_t i = 0; i < whole; i += lanes<float>)
    simd::pstoreu(to + i, round_operand(simd::ploadu<packet<float>>(from + i)));
  round_all(from + whole, to + whole, count - whole);
}

/// Floats rounded to bfloat16, in memory of their own.
template <class = void>
class rounded_copy {
 public:
  rounded_copy(const float* from, index_t count)
      : to_(static_cast<float*>(memory_.take(static_cast<std::size_t>(count) * sizeof(float)))) {
    constexpr index_t some = 1 << 12;
    for_ranges((count + some - 1) / some, some, [&](index_t first, index_t last) {
      const index_t begin = first * some, end = std::min(count, last * some);
      round_operand(from + begin, end - begin, to_ + begin);
    });
  }
  const float* data() const { return to_; }

 private:
  ::xla::detail::working_memory memory_;
  float* to_;
};

template <>
struct small_m_elements<rounded_float> {
  static packet<float> load(const rounded_float* p) {
    return round_operand(simd::ploadu<packet<float>>(&p->number));
  }
  static packet<float> load_first(const rounded_float* p, index_t n) {
    return round_operand(load_part<float>(&p->number, n));
  }
};
template <>
struct small_m_elements<bfloat16> {
  static packet<float> load(const bfloat16* p) {
    return widen_lanes(p, static_cast<std::size_t>(lanes<float>));
  }
  static packet<float> load_first(const bfloat16* p, index_t n) {
    return widen_lanes(p, static_cast<std::size_t>(n));
  }
};

/// The number of steps along k that are rounded at once: they stay in the L1 cache then.
constexpr index_t near_steps = 64;

/// A left operand of floats or bfloat16, packed as rounded floats.
template <class View>
struct rounded_left {
  using plain = strided_left<tile<float>, View>;
  plain as_is;

  void pack(float* to, index_t next, index_t row, index_t k, index_t rows, index_t depth) const {
    constexpr index_t unit = tile<float>::rows;
    for (index_t q = 0; q < depth; q += near_steps) {
      const index_t steps = std::min(near_steps, depth - q);
      float* const some = to + q * unit;
      as_is.pack(some, next, row, k + q, rows, steps);
      if constexpr (plain::same)
        for (index_t i = 0; i < rows; i += unit)
          round_operand(some + i / unit * next, steps * unit, some + i / unit * next);
    }
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
    const index_t step = round_up(columns, lanes<float>);
    for (index_t q = 0; q < depth; q += near_steps) {
      const index_t steps = std::min(near_steps, depth - q);
      float* const some = to + q * step;
      as_is.pack(some, k + q, column, steps, columns);
      if constexpr (plain::same) round_operand(some, steps * step, some);
    }
  }
};

inline void read_rounded(const float* from, index_t count, float* to) {
  round_operand(from, count, to);
}
inline void read_rounded(const bfloat16* from, index_t count, float* to) {
  widen_all(from, to, count);
}

/// A product whose a is contiguous along k: some of its rows are rounded at a time, and read in
/// place while they are in the cache.
template <class A, class B>
void multiply_rounded_rows(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b,
                           strided_rows<float> c, const epilogue* after) {
  constexpr index_t near = 1 << 15, repays_packing = 512, most = 1 << 20;
  const index_t rest = std::min(repays_packing, most / k);
  const index_t some = std::min(m, std::max(near / k * num_threads(), rest));
  const index_t row =
      round_up(k, 32) + 16;  // not a power of two, which would map to few sets of a cache
  float* const rows = left_scratch().get<float>(some * row);
  for (index_t i = 0; i < m; i += some) {
    const index_t count = std::min(some, m - i);
    for_ranges(count, k, [&](index_t first, index_t last) {
      for (index_t r = first; r < last; ++r) read_rounded(a.from(i + r, 0).data, k, rows + r * row);
    });
    using left = strided_left<tile<float>, matrix_view<float>>;
    product<tile<float>, left, rounded_right<matrix_view<B>>> p{
        count, n, k, {{rows, row, 1}, false}, {{b}}, c.from(i, 0)};
    if (!after) {
      multiply(std::move(p));
      continue;
    }
    const epilogue shifted(*after, i);
    p.after = &shifted;
    multiply(std::move(p));
  }
}

}  // namespace xla::kernel::detail
