// SPDX-License-Identifier: Apache-2.0
#pragma once

// Winograd's algorithm along the rows of kernels of at least four columns: a row's taps are cut
// into pieces, and a piece of R taps gives M results by seven products instead of M R. Tiles of M
// results have windows of seven pixels; what remains is a convolution over transformed windows, by
// seven groups (direct.hpp). Input gradients are convolutions of the same kind. algorithms.hpp
// chooses it.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "xla/kernel/convolution/direct.hpp"
#include "xla/kernel/convolution/winograd_range.hpp"

namespace xla::kernel::detail {

inline constexpr int window_points = 7;

/// F(M, R) of pieces of R = 8 - M taps, by polynomials at 0, +-1/2, +-1, 2 and infinity (A. Toom,
/// S. Cook): y = A^T ((G g) * (B^T d)). With random numbers the root mean square of its errors is
/// twice that of sums one after another.
template <int M>
struct row_transform {
  static constexpr int taps = window_points + 1 - M;
  double input[window_points][window_points] = {};
  double weight[window_points][taps] = {}, result[M][window_points] = {};

  constexpr row_transform() {
    constexpr int finite = window_points - 1;
    constexpr double points[finite] = {0, 0.5, -0.5, 1, -1, 2};
    for (int i = 0; i < window_points; ++i) {
      // The polynomial with all other points as its zeros, and its value at this one.
      double *const of = input[i], value = 1;
      of[0] = 1;
      for (int j = 0, degree = 0; j < finite; ++j) {
        if (j == i) continue;
        for (int k = ++degree; k > 0; --k) of[k] = of[k - 1] - points[j] * of[k];
        of[0] *= -points[j];
        if (i < finite) value *= points[i] - points[j];
      }
      double power = 1;
      for (int k = 0; k < std::max(M, taps); ++k) {
        const bool last = i == finite;
        if (k < M) result[k][i] = last ? k == M - 1 : power;
        if (k < taps) weight[i][k] = last ? k == taps - 1 : power / value;
        if (!last) power *= points[i];
      }
    }
  }
};

/// The sum of vectors times coefficients.
template <class T, int N>
packet<T> weighted_sum(const double (&by)[N], const packet<T> (&of)[N]) {
  packet<T> sum = simd::pset1<packet<T>>(T{0});
#pragma GCC unroll 7
  for (int i = 0; i < N; ++i)
    if (by[i] != 0) sum = simd::pmadd(simd::pset1<packet<T>>(static_cast<T>(by[i])), of[i], sum);
  return sum;
}

/// Such a convolution, or the one that an input gradient is, whose taps are mirrored.
template <int M>
struct row_windows {
  static constexpr row_transform<M> by{};
  conv_sizes s;
  bool mirrored;
  index_t pieces, tiles;  // of a row of taps; of a line of the result
  index_t first, last;    // of the windows, M pixels apart, those that see the image

  row_windows(const conv_sizes& of, conv_direction d)
      : s(of), mirrored(d != conv_direction::forward) {
    if (mirrored) {
      std::swap(s.height, s.out_height);
      std::swap(s.width, s.out_width);
      std::swap(s.in, s.out);
      for (int i : {0, 1}) s.padding[i] = s.dilation[i] * (s.kernel[i] - 1) - s.padding[i];
    }
    pieces = (s.kernel[1] + by.taps - 1) / by.taps;
    tiles = (s.out_width + M - 1) / M;
    first = std::max<index_t>(s.padding[1] - window_points + M, 0) / M;
    last = std::min(tiles + pieces - 2, (s.width - 1 + s.padding[1]) / M);
  }
  index_t windows() const { return last - first + 1; }

  /// The convolution over the windows of these images; with `groups` 1 that of one point.
  conv_sizes inner(const conv_sizes& of, index_t groups = window_points) const {
    conv_sizes c = of;
    c.width = windows();
    c.in = groups * s.in;
    c.out_width = tiles;
    c.out = groups * s.out;
    c.kernel[1] = pieces;
    c.padding[1] = first;
    c.groups = groups;
    return c;
  }
  /// The number of elements of the packed form, without its flag.
  template <class T>
  index_t packed_size() const {
    return window_points * direct_packed_size<T>(inner(s, 1), conv_direction::forward);
  }

  /// The weights without a packed form, for the direct convolution.
  template <class T>
  conv_weights<T> direct_weights(const conv_weights<T>& w) const {
    if (!mirrored) return {w.data, w.out_stride, w.in_stride, w.tap_stride};
    return {w.data + (s.taps() - 1) * w.tap_stride, w.in_stride, w.out_stride, -w.tap_stride};
  }

  /// Transforms the weights into panels, as the convolutions over windows pack them, point by
  /// point. Then follows a flag: 1 where the weights are out of the transform's range, else 0.
  template <class T>
  void pack(const conv_weights<T>& w, T* to) const {
    constexpr index_t wide = conv_tile<T>::columns;
    const auto offsets = std::make_unique<index_t[]>(static_cast<std::size_t>(s.taps()));
    for (index_t t = 0; t < s.taps(); ++t) offsets[t] = t * w.tap_stride;
    const tap_weights<T> from{w.data, mirrored ? w.out_stride : w.in_stride,
                              mirrored ? w.in_stride : w.out_stride, offsets.get(), s.taps()};
    std::atomic<bool> fit{true};
    const auto all = [&](const group_weights<T>& g) {
      const index_t panels = (s.out + wide - 1) / wide, most = g.block_channels();
      parallel_for((s.in + most - 1) / most * panels, [&](index_t i) {
        const index_t block = i / panels, column = i % panels * wide;
        const range channels{block * most, std::min(s.in, (block + 1) * most)};
        T* const panel = to + block * g.block_size() + column * g.taps.count * channels.size();
        if (!transform_panel(from, channels, column, std::min(wide, s.out - column), panel,
                             g.size()))
          fit.store(false, std::memory_order_relaxed);
      });
    };
    each_weights<plain_patch_products, T>(inner(s, 1), conv_direction::forward, {}, all);
    to[packed_size<T>()] = fit ? T{0} : T{1};
  }

 private:
  /// Writes a panel of each point, `step` elements apart. Returns whether its weights are in range.
  template <class T>
  bool transform_panel(const tap_weights<T>& from, range channels, index_t first, index_t columns,
                       T* to, index_t step) const {
    constexpr index_t width = lanes<T>;
    const index_t count = channels.size(), taps = s.taps();
    T* const packed = right_scratch().template get<T>(taps * count * width);
    packet<T> squares = simd::pset1<packet<T>>(T{0});
    for (index_t j = 0; j < columns; j += width) {
      from.pack(packed, taps * channels.begin, first + j, taps * count, width);
      for (index_t i = 0; i < s.kernel[0] * pieces * count; ++i) {
        const index_t piece = i / count % pieces * by.taps, channel = i % count;
        const index_t tap = i / count / pieces * s.kernel[1] + piece;
        packet<T> g[by.taps];
        for (index_t t = 0; t < by.taps; ++t) {
          const index_t at = mirrored ? taps - 1 - tap - t : tap + t;
          g[t] = piece + t < s.kernel[1]
                     ? simd::ploadu<packet<T>>(packed + (at * count + channel) * width)
                     : simd::pset1<packet<T>>(T{0});
          squares = simd::pmadd(g[t], g[t], squares);
        }
#pragma GCC unroll 7
        for (int p = 0; p < window_points; ++p)
          simd::pstoreu(to + p * step + i * columns + j, weighted_sum<T>(by.weight[p], g));
      }
    }
    return simd::predux(squares) < ordinary_square<T> * static_cast<T>(count * columns);
  }
};

/// Products of images' windows and packed weights, and the direct sums of images that are out of
/// the transform's range.
template <class T, int M>
struct row_products {
  const row_windows<M>& at;
  const T* packed;
  conv_weights<T> direct;
  const T* x;
  T* y;
  const epilogue* after;
  // Windows that are whole pages apart would map to the same sets of a cache.
  index_t in = at.s.in, out = at.s.out, pixel = window_points * in + line_of<T>;
  index_t made = window_points * out;

  /// As many images at a time, or lines of one, as fit into 8 MB with their results.
  void run() const {
    constexpr index_t most = (8 << 20) / element_size<T>;
    const index_t height = at.s.out_height;
    const index_t one = at.s.height * at.windows() * pixel + height * at.tiles * made;
    const index_t images = std::max<index_t>(most / one, 1);
    const index_t lines = std::clamp<index_t>(height * most / one, 1, height);
    for (index_t i = 0; i < at.s.batch; i += images)
      for (index_t line = 0; line < height; line += lines)
        run(i, std::min(images, at.s.batch - i), line, std::min(lines, height - line));
  }

 private:
  void run(index_t image, index_t images, index_t line, index_t lines) const {
    conv_sizes s = at.s;
    const index_t top = line - s.padding[0], reach = s.dilation[0] * (s.kernel[0] - 1);
    index_t begin = 0;
    if (lines < s.out_height) {
      begin = std::clamp<index_t>(top, 0, s.height - 1);
      s.height = std::clamp(top + lines + reach, begin + 1, s.height) - begin;
    }
    s.batch = images;
    s.out_height = lines;
    s.padding[0] = begin - top;
    const T* const from = x + (image * at.s.height + begin) * s.width * in;
    const index_t first = (image * at.s.out_height + line) * s.out_width;

    const index_t windows = images * s.height * at.windows(), tiles = images * lines * at.tiles;
    const index_t elements = windows * pixel + tiles * made;
    ::xla::detail::working_memory memory;
    T* const v = static_cast<T*>(memory.take(static_cast<std::size_t>(elements) * sizeof(T) +
                                             static_cast<std::size_t>(windows)));
    T* const m = v + windows * pixel;
    bool* const fit = reinterpret_cast<bool*>(v + elements);
    for_ranges(windows, 8 * window_points * in, [&](index_t i, index_t end) {
      for (; i < end; ++i) fit[i] = transform_window(s, from, i, v + i * pixel);
    });
    if (std::find(fit, fit + windows, false) != fit + windows) {
      for (index_t i = image; images > 1 && i < image + images; ++i) run(i, 1, line, lines);
      if (images > 1) return;
      if (!after) return direct_forward(s, from, direct, y + first * out, after);
      const epilogue own(*after, first);
      return direct_forward(s, from, direct, y + first * out, &own);
    }
    const conv_sizes inner = at.inner(s);
    conv_weights<T> u{nullptr, 0, 0, 0, packed};
    const tap_list taps = forward_taps<T>(inner, 0, pixel);
    multiply_groups<plain_patch_products>(inner, conv_direction::forward, u,
                                          forward_patches(inner, v, taps, pixel), taps.offsets,
                                          inner.taps(), tiles, strided_rows<T>{m, made}, nullptr);
    for_ranges(tiles, 4 * made, [&](index_t i, index_t end) {
      for (; i < end; ++i) {
        const index_t column = i % at.tiles * M, to = first + i / at.tiles * s.out_width + column;
        const index_t count = std::min<index_t>(M, s.out_width - column);
        transform_result(m + i * made, y + to * out, count);
        if (after) after->made(to, to + count, out);
      }
    });
  }

  /// Transforms window i of some images. Returns whether its numbers are small enough for that.
  bool transform_window(const conv_sizes& s, const T* from, index_t i, T* v) const {
    const index_t left = (at.first + i % at.windows()) * M - s.padding[1];
    const index_t line = i / at.windows() * s.width;
    const T* seen[window_points];
    for (index_t j = 0; j < window_points; ++j)
      seen[j] = left + j >= 0 && left + j < s.width ? from + (line + left + j) * in : zero_row<T>;
    packet<T> squares = simd::pset1<packet<T>>(T{0});
    for (index_t k = 0; k < in; k += lanes<T>) {
      packet<T> d[window_points];
#pragma GCC unroll 7
      for (int j = 0; j < window_points; ++j) {
        d[j] = simd::ploadu<packet<T>>(seen[j] + k);
        squares = simd::pmadd(d[j], d[j], squares);
      }
#pragma GCC unroll 7
      for (int j = 0; j < window_points; ++j)
        simd::pstoreu(v + j * in + k, weighted_sum<T>(at.by.input[j], d));
    }
    return simd::predux(squares) < ordinary_square<T> * static_cast<T>(in);
  }
  void transform_result(const T* m, T* to, index_t count) const {
    for (index_t k = 0; k < out; k += lanes<T>) {
      packet<T> of[window_points];
#pragma GCC unroll 7
      for (int j = 0; j < window_points; ++j) of[j] = simd::ploadu<packet<T>>(m + j * out + k);
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i)
        if (i < count) simd::pstoreu(to + i * out + k, weighted_sum<T>(at.by.result[i], of));
    }
  }
};

/// Calls f(windows of the convolution).
template <class F>
decltype(auto) with_windows(const conv_sizes& s, conv_direction d, F f) {
  return s.kernel[1] == 5 ? f(row_windows<3>(s, d)) : f(row_windows<4>(s, d));
}

template <class T>
index_t rows_packed_size(const conv_sizes& s, conv_direction d) {
  return with_windows(s, d, [](const auto& at) { return at.template packed_size<T>() + 1; });
}
template <class T>
void rows_pack(const conv_sizes& s, conv_direction d, const conv_weights<T>& w, T* to) {
  with_windows(s, d, [&](const auto& at) { at.pack(w, to); });
}
/// Forward, or the input's gradient.
template <class T>
void multiply_rows(const conv_sizes& s, conv_direction d, const T* x, const conv_weights<T>& w,
                   T* y, const epilogue* after) {
  with_windows(s, d, [&]<int M>(const row_windows<M>& at) {
    ::xla::detail::working_memory memory;
    const index_t size = at.template packed_size<T>();
    const T* packed = w.packed;
    if (!packed) {
      T* const made = static_cast<T*>(memory.take(static_cast<std::size_t>(size + 1) * sizeof(T)));
      at.pack(w, made);
      packed = made;
    }
    if (packed[size] != T{0}) return direct_forward(at.s, x, at.direct_weights(w), y, after);
    row_products<T, M>{at, packed, at.direct_weights(w), x, y, after}.run();
  });
}

}  // namespace xla::kernel::detail
