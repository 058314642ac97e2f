// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of convolutions whose groups have one or a few channels, as many in as out. A
// vector holds neighbouring channels of a pixel: whole groups of Group channels. Lane c of a result
// is a sum over r < Group of lane c ^ r of images, a lane of the same group, times a weight that is
// packed as [tap][r][channel].
//
// If the channels do not fill vectors, the last vector ends with the last channel, and some
// channels are computed twice.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "xla/base/compiler.hpp"
#include "xla/kernel/fused/region.hpp"

namespace xla::kernel::detail {

/// The rows of images that contribute to a row of a result, each with the packed weights of one row
/// of the kernel, or with the sums of these weights' gradients.
template <class T>
struct kernel_rows {
  static constexpr int most = 9;
  int count = 0;
  int fresh = 0, fresh_end = 0;  ///< those that this result uses first
  std::int64_t ahead = 0;        ///< the distance to those of the next result, in elements
  const T* image[most];
  T* weights[most];

  void add(const T* row, T* of) {
    image[count] = row;
    weights[count++] = of;
  }
  /// The number of rows at the end, or at the begin, that this result is the first to use; the next
  /// result has equally many.
  void fetch_next(int rows, bool last, std::int64_t line) {
    fresh = last ? count - rows : 0;
    fresh_end = last ? count : rows;
    ahead = rows * line;
  }
};

template <class T>
alignas(64) inline constexpr T zero_lanes[lanes<T>] = {};

/// Some columns of a row of a result, all channels. The first sum begins at column `first` of the
/// images' rows, which have `width` columns of `channels` elements; outside there are zeros. If
/// `next` is not 0, the result or dy that many elements on is prefetched.
template <class T>
struct column_strip {
  const kernel_rows<T>& rows;
  std::int64_t first, width, channels, next;

  /// Channels from q on of column i.
  const T* column(const T* row, std::int64_t i, std::int64_t q) const {
    return row + (first + i) * channels + q;
  }
  const T* column_or_zeros(const T* row, std::int64_t i, std::int64_t q) const {
    const bool inside = static_cast<std::uint64_t>(first + i) < static_cast<std::uint64_t>(width);
    return inside ? column(row, i, q) : zero_lanes<T>;
  }
  /// Prefetches the data that the next row of the result uses first, to the L2 cache: this row's
  /// fill the L1 cache. Not by Eigen's function, which g++ 12 removes as having no effect.
  template <int Columns>
  XLA_INLINE void fetch(int k, std::int64_t q) const {
    if (k < rows.fresh || k >= rows.fresh_end) return;
#pragma GCC unroll 16
    for (int i = 0; i < Columns; ++i) XLA_PREFETCH(column(rows.image[k], i, q) + rows.ahead, 0, 2);
  }
  XLA_INLINE void fetch_next(const T* dy) const {
    if (next != 0) XLA_PREFETCH(dy + next);
  }
  /// Prefetches memory that is to be written soon; otherwise every first store to a line would wait
  /// for it.
  XLA_INLINE void write(T* to, packet<T> x) const {
    if (next != 0) XLA_PREFETCH(to + next, 1, 2);
    simd::pstoreu(to, x);
  }
  /// Writes N columns, of channels from q on; `to` is the first.
  template <int N>
  XLA_INLINE void write_columns(T* to, std::int64_t, packet<T> (&sum)[N]) const {
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) write(to + t * channels, sum[t]);
  }
  /// Calls f(first channel, its position without overlaps) for all vectors.
  template <class F>
  XLA_INLINE void each_vector(F f) const {
    for (std::int64_t v = 0; v < channels; v += lanes<T>) f(std::min(v, channels - lanes<T>), v);
  }
};

inline constexpr std::int64_t columns_of_strip = 7;

/// Calls f(columns, first column) for strips that cover all columns. The last strip may overlap the
/// previous one.
template <class F>
void each_strip(std::int64_t columns, bool wide, F f) {
  constexpr std::integral_constant<int, columns_of_strip> many;
  std::int64_t x = 0;
  if (wide && columns >= many) {
    for (; x + many <= columns; x += many) f(many, x);
    if (columns - x > 2) return f(many, columns - many);
  }
  for (; x < columns; ++x) f(std::integral_constant<int, 1>{}, x);
}

/// Calls f(r, x with lane c ^ r at lane c) for all r < Group.
template <class T, int Group, class F>
XLA_INLINE void each_rotation(packet<T> x, F f) {
  unroll<Group>([&](auto r) XLA_INLINE_LAMBDA { f(r, exchange_lanes<T, r>(x)); });
}

/// Calls f(e, t, x) for each product of a row of N columns: e numbers the weight, tap by tap and
/// rotation by rotation, t the column of the result, x is the image's pixel with rotated lanes.
template <int Kernel, int Stride, int Group, int N, class T, class F>
XLA_INLINE void each_product(const column_strip<T>& s, const T* row, std::int64_t q, F f) {
  using vector = packet<T>;
  constexpr int columns = (N - 1) * Stride + Kernel;
#pragma GCC unroll 32
  for (int i = 0; i < columns; ++i) {
    const bool inside = i >= Kernel - 1 && i <= columns - Kernel;
    const auto x =
        simd::ploadu<vector>(inside ? s.column(row, i, q) : s.column_or_zeros(row, i, q));
    each_rotation<T, Group>(x, [&](int r, vector rotated) XLA_INLINE_LAMBDA {
#pragma GCC unroll 8
      for (int j = 0; j < Kernel; ++j)
        if (const int t = (i - j) / Stride; i >= j && (i - j) % Stride == 0 && t < N)
          f(j * Group + r, t, rotated);
    });
  }
}

/// N columns of a result at y. Fewer than Kernel columns of the images are outside on either side,
/// or N is 1.
template <int Kernel, int Stride, int Group, int N, class Strip, class T>
[[gnu::noinline]] void sum_columns(const Strip& s, T* y) {
  using vector = packet<T>;
  const std::int64_t channels = s.channels;
  s.each_vector([&](std::int64_t q, std::int64_t) XLA_INLINE_LAMBDA {
    vector sum[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) sum[t] = simd::pset1<vector>(T{0});
#pragma GCC unroll 1
    for (int k = 0; k < s.rows.count; ++k) {
      s.template fetch<N * Stride>(k, q);
      vector weight[Kernel * Group];
#pragma GCC unroll 32
      for (int e = 0; e < Kernel * Group; ++e)
        weight[e] = simd::ploadu<vector>(s.rows.weights[k] + e * channels + q);
      each_product<Kernel, Stride, Group, N>(s, s.rows.image[k], q,
                                             [&](int e, int t, vector x) XLA_INLINE_LAMBDA {
                                               sum[t] = simd::pmadd(weight[e], x, sum[t]);
                                             });
    }
    s.write_columns(y + q, q, sum);
  });
}

/// Adds the products of N columns of dy, except the first `skip`, and images to sums[tap][r].
template <int Kernel, int Stride, int Group, int N, class T>
[[gnu::noinline]] void add_products(const column_strip<T>& s, const T* dy, std::int64_t skip,
                                    std::int64_t stride) {
  using vector = packet<T>;
  s.each_vector([&](std::int64_t q, std::int64_t at) XLA_INLINE_LAMBDA {
    vector d[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) {
      d[t] = simd::ploadu<vector>(t < skip ? zero_lanes<T> : dy + t * s.channels + q);
      s.fetch_next(dy + t * s.channels + q);
    }
#pragma GCC unroll 1
    for (int k = 0; k < s.rows.count; ++k) {
      s.template fetch<N * Stride>(k, q);
      vector sum[Kernel * Group];
#pragma GCC unroll 32
      for (int e = 0; e < Kernel * Group; ++e) sum[e] = simd::pset1<vector>(T{0});
      each_product<Kernel, Stride, Group, N>(
          s, s.rows.image[k], q,
          [&](int e, int t, vector x) XLA_INLINE_LAMBDA { sum[e] = simd::pmadd(d[t], x, sum[e]); });
      T* const to = s.rows.weights[k] + at;
#pragma GCC unroll 32
      for (int e = 0; e < Kernel * Group; ++e)
        simd::pstoreu(to + e * stride, simd::padd(simd::ploadu<vector>(to + e * stride), sum[e]));
    }
  });
}

/// The taps that give the even and odd columns of an input gradient with stride 2 and a padding of
/// the same parity as Kernel / 2: column 2 t + a is a sum over e of taps odd(a) + 2 e times column
/// t + shift(a) - e of dy.
template <int Kernel>
struct phases_of_two {
  static constexpr int odd(int a) { return (a + Kernel / 2) % 2; }
  static constexpr int shift(int a) { return (a + Kernel / 2 % 2 - odd(a)) / 2; }
  static constexpr int taps(int a) { return (Kernel - odd(a) + 1) / 2; }
  static constexpr int lowest = std::min(shift(0) - taps(0), shift(1) - taps(1)) + 1;
  static constexpr int highest = std::max(shift(0), shift(1));
};

/// N pairs of columns of such an input gradient; the strip is one of dy and begins as the phases
/// say. dx is the first column; columns from `begin` to below `end` are written.
template <int Kernel, int Group, int N, class T>
[[gnu::noinline]] void sum_pairs(const column_strip<T>& s, T* dx, std::int64_t begin,
                                 std::int64_t end) {
  using vector = packet<T>;
  using phases = phases_of_two<Kernel>;
  constexpr int columns = N + phases::highest - phases::lowest;
  const std::int64_t channels = s.channels;
  s.each_vector([&](std::int64_t q, std::int64_t) XLA_INLINE_LAMBDA {
    vector sum[2 * N];
#pragma GCC unroll 32
    for (int t = 0; t < 2 * N; ++t) sum[t] = simd::pset1<vector>(T{0});
#pragma GCC unroll 1
    for (int k = 0; k < s.rows.count; ++k) {
      s.template fetch<N>(k, q);
      vector weight[Kernel * Group];
#pragma GCC unroll 32
      for (int e = 0; e < Kernel * Group; ++e)
        weight[e] = simd::ploadu<vector>(s.rows.weights[k] + e * channels + q);
#pragma GCC unroll 32
      for (int i = 0; i < columns; ++i) {
        const auto x = simd::ploadu<vector>(s.column_or_zeros(s.rows.image[k], i, q));
        each_rotation<T, Group>(x, [&](int r, vector rotated) XLA_INLINE_LAMBDA {
#pragma GCC unroll 8
          for (int j = 0; j < Kernel; ++j) {
            const int a = phases::odd(0) == j % 2 ? 0 : 1;
            const int t = phases::lowest + i - phases::shift(a) + j / 2;
            if (t >= 0 && t < N)
              sum[2 * t + a] = simd::pmadd(weight[j * Group + r], rotated, sum[2 * t + a]);
          }
        });
      }
    }
#pragma GCC unroll 32
    for (int t = 0; t < 2 * N; ++t)
      if (t >= begin && t < end) s.write(dx + t * channels + q, sum[t]);
  });
}

/// A pixel of an image and the packed weights of its tap.
template <class T>
struct met_pixel {
  const T* image;
  const T* weights;
};

/// A pixel of a result, of any number of taps and channels.
template <int Group, class T>
[[gnu::noinline]] void sum_pixels(const met_pixel<T>* met, std::int64_t count,
                                  std::int64_t channels, T* y) {
  const auto some = [&](std::int64_t q, auto size) XLA_INLINE_LAMBDA {
    auto sum = simd::pset1<packet<T>>(T{0});
    for (std::int64_t k = 0; k < count; ++k)
      each_rotation<T, Group>(
          load_numbers(met[k].image + q, size), [&](int r, packet<T> rotated) XLA_INLINE_LAMBDA {
            sum = simd::pmadd(load_numbers(met[k].weights + r * channels + q, size), rotated, sum);
          });
    store_numbers(y + q, sum, size);
  };
  if (channels < lanes<T>) return some(0, channels);
  for (std::int64_t v = 0; v < channels; v += lanes<T>)
    some(std::min(v, channels - lanes<T>), all_lanes{});
}

/// Adds the products of `count` pixels of dy and of an image, `step` elements from one to the next,
/// to sums[r].
template <int Group, class T>
[[gnu::noinline]] void add_pixels(const T* dy, const T* image, std::int64_t count,
                                  std::int64_t step, std::int64_t channels, T* sums,
                                  std::int64_t stride) {
  const auto some = [&](std::int64_t q, std::int64_t at, auto size) XLA_INLINE_LAMBDA {
    packet<T> sum[Group];
    unroll<Group>([&](auto r) { sum[r] = simd::pset1<packet<T>>(T{0}); });
    for (std::int64_t i = 0; i < count; ++i) {
      const packet<T> d = load_numbers(dy + i * channels + q, size);
      each_rotation<T, Group>(load_numbers(image + i * step + q, size),
                              [&](auto r, packet<T> rotated)
                                  XLA_INLINE_LAMBDA { sum[r] = simd::pmadd(d, rotated, sum[r]); });
    }
    unroll<Group>([&](auto r) XLA_INLINE_LAMBDA {
      T* const to = sums + r * stride + at;
      simd::pstoreu(to, simd::padd(simd::ploadu<packet<T>>(to), sum[r]));
    });
  };
  if (channels < lanes<T>) return some(0, 0, channels);
  for (std::int64_t v = 0; v < channels; v += lanes<T>)
    some(std::min(v, channels - lanes<T>), v, all_lanes{});
}

}  // namespace xla::kernel::detail
