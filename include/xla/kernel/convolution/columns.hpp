// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of convolutions whose groups have one or a few channels, as many in as out. A
// vector holds neighbouring channels of a pixel: whole groups of Group channels. Lane c of a result
// is a sum over rotations r < Group of a lane of the same group in images, times a weight that is
// packed as [tap][r][channel]. That lane is c ^ r, or r of the group if the group fills a vector.
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
  index_t ahead = 0;             ///< the distance to those of the next result, in elements
  const T* image[most];
  T* weights[most];

  void add(const T* row, T* of) {
    image[count] = row;
    weights[count++] = of;
  }
  /// The number of rows at the end, or at the begin, that this result is the first to use; the next
  /// result has equally many.
  void fetch_next(int rows, bool last, index_t line) {
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
  index_t first, width, channels, next;

  /// Channels from q on of row k's first column, which may be outside.
  const T* begin(int k, index_t q) const { return rows.image[k] + first * channels + q; }
  /// Calls f(i, channels from q on of column i) for Count columns of row k. The first and the last
  /// Edge of them may be outside.
  template <int Count, int Edge, class F>
  XLA_INLINE void each_column(int k, index_t q, F f) const {
    const T* at = begin(k, q);
    const auto end = static_cast<std::uint64_t>(width);
#pragma GCC unroll 32
    for (int i = 0; i < Count; ++i) {
      const bool inside =
          (i >= Edge && i < Count - Edge) || static_cast<std::uint64_t>(first + i) < end;
      f(i, inside ? at : zero_lanes<T>);
      at = xla::detail::hidden(at + channels);
    }
  }
  /// Prefetches the data that the next row of the result uses first, to the L2 cache: this row's
  /// fill the L1 cache. Not by Eigen's function, which g++ 12 removes as having no effect.
  template <int Columns>
  XLA_INLINE void fetch(int k, index_t q) const {
    if (k < rows.fresh || k >= rows.fresh_end) return;
    const T* at = begin(k, q) + rows.ahead;
#pragma GCC unroll 16
    for (int i = 0; i < Columns; ++i, at = xla::detail::hidden(at + channels))
      XLA_PREFETCH(at, 0, 2);
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
  XLA_INLINE void write_columns(T* to, index_t, packet<T> (&sum)[N]) const {
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t, to = xla::detail::hidden(to + channels)) write(to, sum[t]);
  }
  /// Calls f(first channel, its position without overlaps) for all vectors.
  template <class F>
  XLA_INLINE void each_vector(F f) const {
    for (index_t v = 0; v < channels; v += lanes<T>) f(std::min(v, channels - lanes<T>), v);
  }
};

inline constexpr index_t columns_of_strip = 7;

/// Calls f(columns, first column) for strips that cover all columns. The last strip may overlap the
/// previous one.
template <class F>
void each_strip(index_t columns, bool wide, F f) {
  constexpr std::integral_constant<int, columns_of_strip> many;
  index_t x = 0;
  if (wide && columns >= many) {
    for (; x + many <= columns; x += many) f(many, x);
    if (columns - x > 2) return f(many, columns - many);
  }
  for (; x < columns; ++x) f(std::integral_constant<int, 1>{}, x);
}

/// Weights that are used column after column: in registers, or read for each use where there are
/// not enough besides `Others`. With sixteen registers the compiler would otherwise store sums and
/// load them again. Together with hidden addresses: 3x3 on a virtual Zen 3, on 2026-12-01, under
/// load by others (otherwise), relative to before: 144@56 0.86 (0.7), with stride 2 0.72 (0.6),
/// 384@14 in batches of 8 0.85 to 0.95, 32@112 0.82 to 0.89.
template <class T, int Count, int Others>
struct column_weights {
  static constexpr bool held = Count + Others <= EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS;
  const T* from;
  index_t step;
  packet<T> in_registers[held ? Count : 1];

  XLA_INLINE column_weights(const T* weights, index_t apart) : from(weights), step(apart) {
    if constexpr (held)
#pragma GCC unroll 32
      for (int e = 0; e < Count; ++e) in_registers[e] = simd::ploadu<packet<T>>(from + e * step);
  }
  XLA_INLINE packet<T> operator[](int e) {
    if constexpr (held) return in_registers[e];
    from = xla::detail::hidden(from);
    return simd::ploadu<packet<T>>(from + e * step);
  }
};

/// The channel of a group that rotation r has at channel c. So met_channel(c, i) is the rotation
/// that has channel i there.
template <class T, int Group>
constexpr index_t met_channel(index_t c, index_t r) {
  return Group == lanes<T> ? r : c ^ r;
}
/// How many rotations are made from one vector of a pixel: all, or one if a group fills a vector.
/// It is then one number in all lanes.
template <class T, int Group>
inline constexpr int rotations = Group < lanes<T> ? Group : 1;
/// Rotation R of the channels at x.
template <int Group, int R, class T, class Size = all_lanes>
XLA_INLINE packet<T> rotation(const T* x, Size size = {}) {
  if constexpr (Group == lanes<T>) return simd::pset1<packet<T>>(x[R]);
  else return exchange_lanes<T, R>(load_numbers(x, size));
}
/// Calls f(the first channel of row k that is read, the weights, R) for all rotations. Each reads
/// the row again, so that its weights are in registers. 3x3 on a virtual Zen 3, on 2026-12-01,
/// least times relative to all rotations of a pixel at once, forward / input gradient / weight
/// gradient: groups of 4, 128@56: 0.8 / 0.8 / 1; of 8, 256@28: 0.7 / 0.7 / 0.7, 256@56 with stride
/// 2: 0.7 / 0.8 / 0.7. With AVX-512, not measured, g++ no longer stores sums of groups of 8.
template <class T, int Group, class F>
XLA_INLINE void each_rotation(const column_strip<T>& s, int k, index_t q, F f) {
#pragma GCC unroll 1
  for (index_t first = 0; first < Group; first += rotations<T, Group>)
    unroll<rotations<T, Group>>([&](auto r) XLA_INLINE_LAMBDA {
      f(q + first, s.rows.weights[k] + (first + r) * s.channels + q, r);
    });
}

/// Calls f(j, t, channels from q on of the pixel) for each product of row k and N columns: of tap j
/// and column t.
template <int Kernel, int Stride, int N, class T, class F>
XLA_INLINE void each_product(const column_strip<T>& s, int k, index_t q, F f) {
  constexpr int columns = (N - 1) * Stride + Kernel;
  s.template each_column<columns, Kernel - 1>(k, q, [&](int i, const T* at) XLA_INLINE_LAMBDA {
#pragma GCC unroll 8
    for (int j = 0; j < Kernel; ++j)
      if (const int t = (i - j) / Stride; i >= j && (i - j) % Stride == 0 && t < N) f(j, t, at);
  });
}

/// N columns of a result at y. Fewer than Kernel columns of the images are outside on either side,
/// or N is 1.
template <int Kernel, int Stride, int Group, int N, class Strip, class T>
[[gnu::noinline]] void sum_columns(const Strip& s, T* y) {
  using vector = packet<T>;
  const index_t channels = s.channels;
  s.each_vector([&](index_t q, index_t) XLA_INLINE_LAMBDA {
    vector sum[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) sum[t] = simd::pset1<vector>(T{0});
#pragma GCC unroll 1
    for (int k = 0; k < s.rows.count; ++k) {
      s.template fetch<N * Stride>(k, q);
      each_rotation<T, Group>(
          s, k, q, [&](index_t from, const T* weights, auto r) XLA_INLINE_LAMBDA {
            column_weights<T, Kernel, N + 1> weight(weights, Group * channels);
            each_product<Kernel, Stride, N>(
                s, k, from, [&](int j, int t, const T* at) XLA_INLINE_LAMBDA {
                  sum[t] = simd::pmadd(weight[j], rotation<Group, r>(at), sum[t]);
                });
          });
    }
    s.write_columns(y + q, q, sum);
  });
}

/// Adds the products of N columns of dy, except the first `skip`, and images to sums[tap][r].
template <int Kernel, int Stride, int Group, int N, class T>
[[gnu::noinline]] void add_products(const column_strip<T>& s, const T* dy, index_t skip,
                                    index_t stride) {
  using vector = packet<T>;
  s.each_vector([&](index_t q, index_t at) XLA_INLINE_LAMBDA {
    vector d[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) {
      d[t] = simd::ploadu<vector>(t < skip ? zero_lanes<T> : dy + t * s.channels + q);
      s.fetch_next(dy + t * s.channels + q);
    }
#pragma GCC unroll 1
    for (int k = 0; k < s.rows.count; ++k) {
      s.template fetch<N * Stride>(k, q);
      constexpr int count = rotations<T, Group>;
#pragma GCC unroll 1
      for (index_t first = 0; first < Group; first += count) {
        vector sum[Kernel * count];
#pragma GCC unroll 32
        for (int e = 0; e < Kernel * count; ++e) sum[e] = simd::pset1<vector>(T{0});
        each_product<Kernel, Stride, N>(s, k, q + first,
                                        [&](int j, int t, const T* pixel) XLA_INLINE_LAMBDA {
                                          unroll<count>([&](auto r) XLA_INLINE_LAMBDA {
                                            vector& one = sum[j * count + r];
                                            one = simd::pmadd(d[t], rotation<Group, r>(pixel), one);
                                          });
                                        });
        T* const to = s.rows.weights[k] + first * stride + at;
#pragma GCC unroll 32
        for (int e = 0; e < Kernel * count; ++e) {
          T* const one = to + (e / count * Group + e % count) * stride;
          simd::pstoreu(one, simd::padd(simd::ploadu<vector>(one), sum[e]));
        }
      }
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
[[gnu::noinline]] void sum_pairs(const column_strip<T>& s, T* dx, index_t begin, index_t end) {
  using vector = packet<T>;
  using phases = phases_of_two<Kernel>;
  constexpr int columns = N + phases::highest - phases::lowest;
  const index_t channels = s.channels;
  s.each_vector([&](index_t q, index_t) XLA_INLINE_LAMBDA {
    vector sum[2 * N];
#pragma GCC unroll 32
    for (int t = 0; t < 2 * N; ++t) sum[t] = simd::pset1<vector>(T{0});
#pragma GCC unroll 1
    for (int k = 0; k < s.rows.count; ++k) {
      s.template fetch<N>(k, q);
      each_rotation<T, Group>(
          s, k, q, [&](index_t from, const T* weights, auto r) XLA_INLINE_LAMBDA {
            column_weights<T, Kernel, 2 * N + 1> weight(weights, Group * channels);
            s.template each_column<columns, columns>(
                k, from, [&](int i, const T* at) XLA_INLINE_LAMBDA {
                  const auto x = rotation<Group, r>(at);
#pragma GCC unroll 8
                  for (int j = 0; j < Kernel; ++j) {
                    const int a = phases::odd(0) == j % 2 ? 0 : 1;
                    const int t = phases::lowest + i - phases::shift(a) + j / 2;
                    if (t >= 0 && t < N) sum[2 * t + a] = simd::pmadd(weight[j], x, sum[2 * t + a]);
                  }
                });
          });
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
[[gnu::noinline]] void sum_pixels(const met_pixel<T>* met, index_t count, index_t channels, T* y) {
  const auto some = [&](index_t q, auto size) XLA_INLINE_LAMBDA {
    auto sum = simd::pset1<packet<T>>(T{0});
    for (index_t k = 0; k < count; ++k)
      unroll<Group>([&](auto r) XLA_INLINE_LAMBDA {
        const auto weight = load_numbers(met[k].weights + r * channels + q, size);
        sum = simd::pmadd(weight, rotation<Group, r>(met[k].image + q, size), sum);
      });
    store_numbers(y + q, sum, size);
  };
  if (channels < lanes<T>) return some(0, channels);
  for (index_t v = 0; v < channels; v += lanes<T>)
    some(std::min(v, channels - lanes<T>), all_lanes{});
}

/// Adds the products of `count` pixels of dy and of an image, `step` elements from one to the next,
/// to sums[r].
template <int Group, class T>
[[gnu::noinline]] void add_pixels(const T* dy, const T* image, index_t count, index_t step,
                                  index_t channels, T* sums, index_t stride) {
  const auto some = [&](index_t q, index_t at, auto size) XLA_INLINE_LAMBDA {
    packet<T> sum[Group];
    unroll<Group>([&](auto r) { sum[r] = simd::pset1<packet<T>>(T{0}); });
    for (index_t i = 0; i < count; ++i) {
      const packet<T> d = load_numbers(dy + i * channels + q, size);
      unroll<Group>([&](auto r) XLA_INLINE_LAMBDA {
        sum[r] = simd::pmadd(d, rotation<Group, r>(image + i * step + q, size), sum[r]);
      });
    }
    unroll<Group>([&](auto r) XLA_INLINE_LAMBDA {
      T* const to = sums + r * stride + at;
      simd::pstoreu(to, simd::padd(simd::ploadu<packet<T>>(to), sum[r]));
    });
  };
  if (channels < lanes<T>) return some(0, 0, channels);
  for (index_t v = 0; v < channels; v += lanes<T>)
    some(std::min(v, channels - lanes<T>), v, all_lanes{});
}

}  // namespace xla::kernel::detail
