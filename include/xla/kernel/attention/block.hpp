// SPDX-License-Identifier: Apache-2.0
#pragma once

// A block of scores that stays in the cache, and the operations of softmax on it: masks,
// exponentials, copies of rows. A block is transposed: rows are keys, lanes are queries. So every
// product reads keys and values in place, and all work on a query's scores stays in its lane. The
// products themselves are a parameter (products.hpp). attention.hpp and gradient.hpp use it.

#include <algorithm>
#include <limits>
#include <numbers>
#include <type_traits>

#include "xla/base/compiler.hpp"
#include "xla/kernel/attention/call.hpp"
#include "xla/kernel/gemm/right_operand.hpp"
#include "xla/kernel/simd/math.hpp"

namespace xla::kernel {

namespace detail {

template <class T>
inline constexpr T hidden_score = -std::numeric_limits<T>::infinity();

template <class T>
XLA_INLINE vec<T> load_lanes(const T* from) {
  return {simd::ploadu<packet<T>>(from)};
}
template <class T>
XLA_INLINE void store_lanes(T* to, vec<T> x) {
  simd::pstoreu(to, x.v);
}

#if defined(__GNUC__) && !defined(__clang__)
// A packet as a template argument loses attributes that nothing here relies on.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

/// Whether exponentials are computed as powers of two: for float on a vector unit, where 2^n is a
/// number with exponent bits n. `exponents<T>` scales from base e.
template <class T>
inline constexpr bool by_two = std::is_same_v<T, float> && is_vector<T>;
template <class T>
inline constexpr T exponents = by_two<T> ? std::numbers::log2e_v<T> : T{1};

/// Two to the power of such an exponent, which is at most slightly above 0. Results below the
/// normal numbers are 0.
template <class T>
XLA_INLINE vec<T> power(vec<T> x) {
  if constexpr (!by_two<T>) return x.exp();
  else {
    // Adding this to a whole number puts it into the lowest bits, with the bias of exponents.
    const vec<T> whole = vec<T>::splat(12582912.f + 127), shifted = x + whole;
    const vec<T> y = polynomial(x - (shifted - whole), math_table<T>::exp2);
    using integers = typename simd::unpacket_traits<packet<T>>::integer_packet;
    const auto bits = simd::plogical_shift_left<23>(simd::preinterpret<integers>(shifted.v));
    const vec<T> scale{simd::preinterpret<packet<T>>(bits)};
    return (x < vec<T>::splat(-126)).select(vec<T>::splat(0), y * scale);
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Some queries of one head, and the scores of some keys for them.
template <class T>
struct score_block {
  static constexpr index_t width = lanes<T>;

  const attention_call<T>& of;
  index_t batch, head;  ///< of queries
  index_t first, count;
  index_t lanes_;  ///< room for this many queries, in whole vectors

  index_t kv_head() const { return head / of.group(); }
  index_t seen() const { return of.seen_before(first + count); }

  /// Prefetches the queries' rows of a tensor, because the hardware prefetcher does not know where
  /// a block begins.
  void fetch(const head_rows<const T>& x, index_t columns) const {
    for (index_t i = 0; i < count; ++i) {
      const T* const row = x.at(batch, head, first + i);
      for (index_t d = 0; d < columns; d += line_of<T>) XLA_PREFETCH(row + d, 0, 2);
    }
  }
  /// The factor from scores to exponents.
  T to_exponents() const { return of.later_scale() * exponents<T>; }

  /// Hides the scores (keys, lanes) that the mask hides, for keys from j on, or adds the mask's
  /// numbers and scales them.
  void apply_mask(T* scores, index_t j, index_t keys) const {
    if (of.mask) add_mask(scores, j, keys);
    if (of.causal) hide_later(scores, j, keys);
  }

 private:
  // The same for keys after a query.
  void hide_later(T* to, index_t j, index_t keys) const {
    const vec<T> hidden = vec<T>::splat(hidden_score<T>);
    const vec<T> number{simd::plset<packet<T>>(T{0})};
    for (index_t r = std::max<index_t>(0, first + 1 - j); r < keys; ++r) {
      const index_t before = j + r - first;  // this many queries do not attend to it
      T* const row = to + r * lanes_;
      for (index_t i = 0; i < std::min(before, lanes_); i += width) {
        const auto late = number < vec<T>::splat(static_cast<T>(before - i));
        store_lanes(row + i, late.select(hidden, load_lanes(row + i)));
      }
    }
  }

  void add_mask(T* to, index_t j, index_t keys) const {
    const auto& m = of.mask;
    const index_t at = batch * m.batch + head * m.head + first * m.query + j * m.key;
    if (m.query == 0) {
      for (index_t r = 0; r < keys; ++r)
        say(to + r * lanes_, vec<T>::splat(said(at + r * m.key)), lanes_);
      return;
    }
    T some[width * width], transposed[width * width];
    for (index_t i = 0; i < count; i += width)
      for (index_t r = 0; r < keys; r += width) {
        const index_t rows = std::min(width, keys - r);
        for (index_t a = 0; a < width; ++a)
          for (index_t b = 0; b < rows; ++b)
            some[a * width + b] =
                i + a < count ? said(at + (i + a) * m.query + (r + b) * m.key)
                              : hidden_score<T>;  // an absent neighbour in a pair has weight 0
        pack_columns<T>(transposed, width, some, width, rows, width);
        for (index_t b = 0; b < rows; ++b)
          say(to + (r + b) * lanes_ + i, load_lanes(transposed + b * width), width);
      }
  }
  T said(index_t at) const {
    return of.mask.added ? of.mask.added[at] : of.mask.shown[at] ? T{0} : hidden_score<T>;
  }
  // A mask of bool hides a score whatever its value, even NaN.
  void say(T* row, vec<T> what, index_t lanes) const {
    const vec<T> hidden = vec<T>::splat(hidden_score<T>), by = vec<T>::splat(of.scale());
    for (index_t i = 0; i < lanes; i += width) {
      const vec<T> x = load_lanes(row + i);
      store_lanes(row + i, of.mask.added ? fma(x, by, what) : (what == hidden).select(hidden, x));
    }
  }
};

/// A vector, or its first elements.
template <class T>
XLA_INLINE void add_row(T* to, const T* from, index_t some, bool begins) {
  const vec<T> x = load_lanes(from);
  if (some == lanes<T>) store_lanes(to, begins ? x : load_lanes(to) + x);
  else store_part<T>(to, (begins ? x : vec<T>{load_part<T>(to, some)} + x).v, some);
}

/// Rows from a block that is transposed: rows(i, d) = block(d, i), or added to them.
template <class T>
void unpack_rows(T* rows, index_t row, const T* block, index_t lanes, index_t depth, index_t count,
                 bool begins) {
  constexpr index_t width = kernel::lanes<T>;
  alignas(64) T transposed[width * width];
  for (index_t i = 0; i < count; i += width)
    for (index_t d = 0; d < depth; d += width) {
      const index_t some = std::min(width, depth - d), filled = std::min(width, count - i);
      T* const to = rows + i * row + d;
      const T* const from = block + d * lanes + i;
      if (begins && some == width && filled == width) {
        pack_columns<T>(to, row, from, lanes, width, width);
        continue;
      }
      pack_columns<T>(transposed, width, from, lanes, width, some);
      for (index_t a = 0; a < filled; ++a)
        add_row(to + a * row, transposed + a * width, some, begins);
    }
}
}  // namespace detail
}  // namespace xla::kernel
