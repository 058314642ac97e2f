// SPDX-License-Identifier: Apache-2.0
#pragma once

// Depthwise sums over two neighbouring rows of a result with stride 1: a row of images is loaded
// once for both. The upper, leading row uses it one tap later than the lower, trailing one. Every
// sum has the order of sum_columns().

#include <cstdint>

#include "xla/base/compiler.hpp"
#include "xla/kernel/convolution/columns.hpp"

namespace xla::kernel::detail {

/// The rows of images that both results use, with the weights of the leading one.
template <class T>
struct shared_rows {
  kernel_rows<T> rows;
  index_t first;  ///< row of the kernel that the leading result applies to the first of them
  index_t taps;   ///< rows of the kernel
  index_t step;   ///< the distance between the weights of successive rows

  /// Calls f(leading, trailing), each true if that result uses row k.
  template <class F>
  XLA_INLINE void with_users_of(int k, F f) const {
    if (first + k == 0) f(std::true_type{}, std::false_type{});
    else if (first + k == taps) f(std::false_type{}, std::true_type{});
    else f(std::true_type{}, std::true_type{});
  }
};

/// N columns of both results, under the conditions of sum_columns().
template <int Kernel, int N, class Strip, class T>
[[gnu::noinline]] void sum_two_rows(const Strip& s, const shared_rows<T>& shared, T* leading,
                                    T* trailing) {
  using vector = packet<T>;
  const index_t channels = s.channels;
  s.each_vector([&](index_t q, index_t) XLA_INLINE_LAMBDA {
    vector sum[2][N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) sum[0][t] = sum[1][t] = simd::pset1<vector>(T{0});
#pragma GCC unroll 1
    for (int k = 0; k < s.rows.count; ++k) {
      s.template fetch<N>(k, q);
      const T* const weights = s.rows.weights[k] + q;
      shared.with_users_of(k, [&](auto lead, auto trail) XLA_INLINE_LAMBDA {
        // Of a result that does not use row k, the other's: its own are not there.
        const T* const before = weights - shared.step;
        column_weights<T, Kernel, 2 * N + Kernel + 1> upper(lead ? weights : before, channels),
            lower(trail ? before : weights, channels);
        each_product<Kernel, 1, N>(s, k, q, [&](int j, int t, const T* at) XLA_INLINE_LAMBDA {
          const vector x = simd::ploadu<vector>(at);
          if (lead) sum[0][t] = simd::pmadd(upper[j], x, sum[0][t]);
          if (trail) sum[1][t] = simd::pmadd(lower[j], x, sum[1][t]);
        });
      });
    }
    s.write_columns(leading + q, q, sum[0]);
    s.write_columns(trailing + q, q, sum[1]);
  });
}

/// Adds the products of N columns of two rows of dy, except the first `skip`, and images to
/// sums[tap].
template <int Kernel, int N, class T>
[[gnu::noinline]] void add_two_rows(const column_strip<T>& s, const shared_rows<T>& shared,
                                    const T* leading, const T* trailing, index_t skip,
                                    index_t stride) {
  using vector = packet<T>;
  s.each_vector([&](index_t q, index_t at) XLA_INLINE_LAMBDA {
    vector d[2][N], before[Kernel];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) {
      const index_t column = t * s.channels + q;
      d[0][t] = simd::ploadu<vector>(t < skip ? zero_lanes<T> : leading + column);
      d[1][t] = simd::ploadu<vector>(t < skip ? zero_lanes<T> : trailing + column);
      s.fetch_next(leading + column);
      s.fetch_next(trailing + column);
    }
#pragma GCC unroll 8
    for (int j = 0; j < Kernel; ++j) before[j] = simd::pset1<vector>(T{0});
    const auto add_before = [&](T* to) XLA_INLINE_LAMBDA {
#pragma GCC unroll 8
      for (int j = 0; j < Kernel; ++j, to += stride)
        simd::pstoreu(to, simd::padd(simd::ploadu<vector>(to), before[j]));
    };
#pragma GCC unroll 1
    for (int k = 0; k < s.rows.count; ++k) {
      s.template fetch<N>(k, q);
      T* const sums = s.rows.weights[k] + at;
      shared.with_users_of(k, [&](auto lead, auto trail) XLA_INLINE_LAMBDA {
        vector now[Kernel];
#pragma GCC unroll 8
        for (int j = 0; j < Kernel; ++j) now[j] = simd::pset1<vector>(T{0});
        each_product<Kernel, 1, N>(s, k, q, [&](int j, int t, const T* at) XLA_INLINE_LAMBDA {
          const vector x = simd::ploadu<vector>(at);
          if (lead) now[j] = simd::pmadd(d[0][t], x, now[j]);
          if (trail) before[j] = simd::pmadd(d[1][t], x, before[j]);
        });
        if (trail) add_before(sums - shared.step);
#pragma GCC unroll 8
        for (int j = 0; j < Kernel; ++j) before[j] = now[j];
      });
    }
    if (const int last = s.rows.count - 1; last >= 0 && shared.first + last < shared.taps)
      add_before(s.rows.weights[last] + at);
  });
}

}  // namespace xla::kernel::detail
