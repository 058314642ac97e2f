// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums in blocks: elements of a block are added plainly, at most block_terms to a chain; its sum is
// added to the previous blocks with the rounding error tracked. Row regions, sums over columns and
// long products use it.

#include "xla/base/compiler.hpp"
#include "xla/kernel/fused/region.hpp"

namespace xla::kernel {

inline constexpr std::int64_t block_terms = 16;

/// The running sum of blocks, and its rounding error (two-sum, as in Kahan's summation). The error
/// is inexact where a block is larger than the sum before it, but then does not matter.
template <class V>
struct block_sum {
  V sum, lost;

  XLA_INLINE void add(V block) {
    const V all = sum + block;
    lost = lost + (block - (all - sum));
    sum = all;
  }
  XLA_INLINE V total() const {
    const V all = sum + lost;
    return (all == all).select(all, sum);  // the error of an infinite sum would be NaN
  }
};

/// Sums of n columns. `lost` has their rounding errors; it is null for plain sums.
template <class T>
struct column_sums {
  T *sum, *lost;

  /// Adds others to these, or stores them if they are the first.
  [[gnu::noinline]] void add(column_sums more, std::int64_t n, bool first) const {
    each(n, [&](std::int64_t k, auto lanes) XLA_INLINE_LAMBDA {
      auto read = [&](const T* p) { return V{p ? load_numbers(p + k, lanes) : V::splat(T(0)).v}; };
      block_sum<V> s{read(first ? nullptr : sum), read(first ? nullptr : lost)};
      if (lost) {
        s.add(read(more.sum));
        store_numbers(lost + k, (s.lost + read(more.lost)).v, lanes);
      } else {
        s.sum = s.sum + read(more.sum);
      }
      store_numbers(sum + k, s.sum.v, lanes);
    });
  }
  [[gnu::noinline]] void total(T* out, std::int64_t n) const {
    each(n, [&](std::int64_t k, auto lanes) XLA_INLINE_LAMBDA {
      block_sum<V> s{{load_numbers(sum + k, lanes)}, V::splat(T(0))};
      if (lost) s.lost = {load_numbers(lost + k, lanes)};
      store_numbers(out + k, s.total().v, lanes);
    });
  }

 private:
  using V = vec<T>;
  template <class F>
  static XLA_INLINE void each(std::int64_t n, F f) {
    std::int64_t k = 0;
    for (; k + lanes<T> <= n; k += lanes<T>) f(k, all_lanes{});
    if constexpr (lanes<T> > 1)
      if (k < n) f(k, n - k);
  }
};

}  // namespace xla::kernel
