// SPDX-License-Identifier: Apache-2.0
#pragma once

// Winograd's algorithm for 3 x 3 taps of stride 1. It transforms tiles of the input and the
// weights, multiplies them position by position of the transformed tile (ordinary products), and
// transforms the products back. Channels are whole vectors. Input gradients are convolutions of the
// same kind; winograd_gradient.hpp has the weight's. algorithms.hpp chooses it.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "xla/kernel/convolution/weight_gradient.hpp"
#include "xla/kernel/convolution/winograd_range.hpp"
#include "xla/kernel/convolution/winograd_transform.hpp"
#include "xla/kernel/gemm/rounded.hpp"

namespace xla::kernel::detail {

/// The tiles of a result of this many pixels.
template <int M>
struct winograd_tiles {
  index_t batch, height, width;
  index_t rows = (height + M - 1) / M, columns = (width + M - 1) / M;
  index_t count = batch * rows * columns;

  struct position {
    index_t image, y, x;
  };
  position operator[](index_t i) const {
    return {i / (rows * columns), i / columns % rows * M, i % columns * M};
  }
};

/// The distance in elements between positions of the transformed tile. It is not a power of two,
/// because such strides map to few sets of a cache.
template <class T>
constexpr index_t position_step(index_t values) {
  return values + line_of<T>;
}

/// Transformed tiles of some images, [position][tile][channel], positions `step` apart.
template <class T>
struct winograd_values {
  T* data;
  index_t channels, step;
};

/// Images from which tiles are read, with zeros around them; the first tile begins `top` rows and
/// `left` columns before the corner. Pixels are `pixel` elements apart.
template <class T>
struct winograd_images {
  const T* data;
  index_t height, width, channels, top, left, pixel = channels;
  bool rounds = false;  ///< see conv_sizes
};

template <bool Rounds, class T>
packet<T> load_operand(const T* p) {
  const packet<T> x = simd::ploadu<packet<T>>(p);
  if constexpr (Rounds) return round_operand(x);
  else return x;
}
/// Calls f with std::true_type where operands are rounded to bfloat16, else with std::false_type.
template <class T, class F>
void with_rounding(bool rounds, F f) {
  if constexpr (std::is_same_v<T, float>)
    if (rounds) return f(std::true_type{});
  f(std::false_type{});
}

/// The positions of a tile's pixels.
template <class T, int M>
struct tile_pixels {
  static constexpr index_t size = M + 2;
  const T* at[size * size];

  tile_pixels(const winograd_images<T>& from, typename winograd_tiles<M>::position tile) {
    for (index_t i = 0; i < size; ++i)
      for (index_t j = 0; j < size; ++j) {
        const index_t y = tile.y + i - from.top, x = tile.x + j - from.left;
        const bool inside = y >= 0 && y < from.height && x >= 0 && x < from.width;
        at[i * size + j] =
            inside ? from.data + ((tile.image * from.height + y) * from.width + x) * from.pixel
                   : zero_row<T>;
      }
  }
};

/// Transforms tiles, and marks in large[] those that find_mixed() must examine because their values
/// may be too large for the transform. Nine positions suffice for the test, as every element
/// reaches one of them, and equal elements do not cancel in all.
template <bool Rounds, class T, int M>
void transform_images(const winograd_images<T>& from, const winograd_tiles<M>& tiles, range some,
                      winograd_values<T> to, bool* large) {
  using transform = winograd<T, M>;
  using vector = packet<T>;
  constexpr int size = transform::size;
  const T ordinary = ordinary_square<T> * static_cast<T>(from.channels);
  for (index_t tile = some.begin; tile < some.end; ++tile) {
    const tile_pixels<T, M> pixels(from, tiles[tile]);
    const T* const* const at = pixels.at;
    T* const result = to.data + (tile - some.begin) * to.channels;
    vector squares = simd::pset1<vector>(T{0});
    for (index_t k = 0; k < from.channels; k += lanes<T>) {
      vector half[transform::positions];
#pragma GCC unroll 6
      for (int j = 0; j < size; ++j) {
        vector d[size];
#pragma GCC unroll 6
        for (int i = 0; i < size; ++i) d[i] = load_operand<Rounds>(at[i * size + j] + k);
        transform::template input<1, size>(d, half + j);
      }
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) {
        vector v[size];
        transform::template input<1, 1>(half + i * size, v);
#pragma GCC unroll 6
        for (int j = 0; j < size; ++j) simd::pstoreu(result + (i * size + j) * to.step + k, v[j]);
        if (i <= 1 || i == size - 1)
          squares = simd::padd(squares, sum_of_squares(v[0], v[1], v[size - 1]));
      }
    }
    if (!(simd::predux(squares) < ordinary)) large[tile - some.begin] = true;
  }
}

template <class T, int M>
void transform_input(const winograd_images<T>& from, const winograd_tiles<M>& tiles, range some,
                     winograd_values<T> to, bool* large) {
  with_rounding<T>(from.rounds, [&](auto rounds) {
    transform_images<rounds.value>(from, tiles, some, to, large);
  });
}

/// Keeps only the marks of tiles whose range of values the transforms cannot represent accurately.
template <class T, int M>
void find_mixed(const winograd_images<T>& from, const winograd_tiles<M>& tiles, range some,
                bool* marked) {
  for (index_t tile = some.begin; tile < some.end; ++tile, ++marked) {
    if (!*marked) continue;
    const auto position = tiles[tile];
    const tile_pixels<T, M> pixels(from, position);
    const index_t rows = std::min<index_t>(M, tiles.height - position.y);
    const index_t columns = std::min<index_t>(M, tiles.width - position.x);
    with_rounding<T>(from.rounds, [&](auto rounds) {
      *marked = is_mixed<M + 2, 3>(pixels.at, from.channels, rows, columns,
                                   &load_operand<rounds.value, T>);
    });
  }
}

inline bool any_marked(const bool* marked, index_t count) {
  return std::find(marked, marked + count, true) != marked + count;
}

/// Computes the marked tiles by direct sums, or all tiles if the weights are out of the transforms'
/// range.
template <class T, int M>
struct direct_tiles {
  const winograd_images<T>& from;
  const winograd_tiles<M>& tiles;
  const tap_weights<T>& weights;
  bool backwards;  ///< mirrored taps, as for the input's gradient
  const bool* marked;
  bool all;

  /// Writes columns of a tile, for the weights from `first` on, to images whose pixels are `pixel`
  /// elements apart.
  [[gnu::noinline, gnu::cold]] void make(index_t tile, range columns, T* y, index_t pixel) const {
    constexpr index_t width = lanes<T>;
    const index_t in = from.channels;
    const auto position = tiles[tile];
    const tile_pixels<T, M> pixels(from, position);
    T* const taps = right_scratch().template get<T>(9 * in * width);
    T* const corner =
        y + ((position.image * tiles.height + position.y) * tiles.width + position.x) * pixel;
    for (index_t k = 0; k < columns.size(); k += width) {
      weights.pack(taps, 0, columns.begin + k, 9 * in, width);
      if constexpr (std::is_same_v<T, float>)
        if (from.rounds) round_operand(taps, 9 * in * width, taps);
      for (index_t i = 0; i < std::min<index_t>(M, tiles.height - position.y); ++i)
        for (index_t j = 0; j < std::min<index_t>(M, tiles.width - position.x); ++j)
          simd::pstoreu(corner + (i * tiles.width + j) * pixel + k, sum(pixels, i, j, taps));
    }
  }

 private:
  /// A vector of columns of one pixel: a sum over channels for each tap.
  packet<T> sum(const tile_pixels<T, M>& pixels, index_t i, index_t j, const T* taps) const {
    using vector = packet<T>;
    vector all = simd::pset1<vector>(T{0});
    for (index_t t = 0; t < 9; ++t) {
      const T* const x = pixels.at[(i + t / 3) * (M + 2) + j + t % 3];
      const T* const w = taps + (backwards ? 8 - t : t) * from.channels * lanes<T>;
      vector one = simd::pset1<vector>(T{0});
      for (index_t c = 0; c < from.channels; ++c)
        one = simd::pmadd(simd::pset1<vector>(operand(x[c])),
                          simd::ploadu<vector>(w + c * lanes<T>), one);
      all = simd::padd(all, one);
    }
    return all;
  }
  T operand(T x) const {
    if constexpr (std::is_same_v<T, float>)
      if (from.rounds) round_operand(&x, 1, &x);
    return x;
  }
};

/// Notifies the epilogue that the pixels of tiles first … last, all in one row of tiles, are
/// finished.
template <int M>
void notify_row(const epilogue& after, const winograd_tiles<M>& tiles, index_t first, index_t last,
                index_t channels) {
  const auto [image, top, left] = tiles[first];
  const index_t end = std::min(tiles.width, tiles[last].x + M);
  for (index_t y = top; y < std::min(tiles.height, top + M); ++y) {
    const index_t row = (image * tiles.height + y) * tiles.width;
    after.made(row + left, row + end, channels);
  }
}

/// Writes to images whose pixels are `pixel` elements apart; the weights' columns begin at
/// `column`.
template <class T, int M>
void transform_output(winograd_values<T> from, const winograd_tiles<M>& tiles, range some, T* y,
                      index_t pixel, index_t column, const direct_tiles<T, M>& direct,
                      const epilogue* after) {
  using transform = winograd<T, M>;
  using vector = packet<T>;
  constexpr int size = transform::size;
  for (index_t tile = some.begin; tile < some.end; ++tile) {
    const auto [image, top, left] = tiles[tile];
    const index_t height = std::min<index_t>(M, tiles.height - top);
    const index_t width = std::min<index_t>(M, tiles.width - left);
    T* const corner = y + ((image * tiles.height + top) * tiles.width + left) * pixel;
    for (index_t k = 0; k < from.channels; k += lanes<T>) {
      const T* const at = from.data + (tile - some.begin) * from.channels + k;
      vector half[M * size];
#pragma GCC unroll 6
      for (int j = 0; j < size; ++j) {
        vector m[size];
#pragma GCC unroll 6
        for (int i = 0; i < size; ++i) m[i] = simd::ploadu<vector>(at + (i * size + j) * from.step);
        transform::template output<1, size>(m, half + j);
      }
      for (index_t i = 0; i < height; ++i) {
        vector out[M];
        transform::template output<1, 1>(half + i * size, out);
        T* const to = corner + i * tiles.width * pixel + k;
#pragma GCC unroll 4
        for (int j = 0; j < M; ++j)
          if (j < width) simd::pstoreu(to + j * pixel, out[j]);
      }
    }
    if (direct.all || direct.marked[tile - some.begin])
      direct.make(tile, {column, column + from.channels}, y, pixel);
    if (after != nullptr && (left + M >= tiles.width || tile + 1 == some.end))
      notify_row(*after, tiles, std::max(some.begin, tile - tile % tiles.columns), tile,
                 from.channels);
  }
}

/// Transforms the weights of the channels ks and one vector of columns into u, as [channel][column]
/// for each position; strides are `step` and `stride`. Taps are mirrored for the input's gradient.
/// Returns whether the weights are in the transforms' range, also for pixels at the border, which
/// see only some taps.
template <class T, int M>
bool transform_taps(const tap_weights<T>& w, range ks, index_t column, bool backwards, bool rounds,
                    T* u, index_t step, index_t stride) {
  using transform = winograd<T, M>;
  using vector = packet<T>;
  constexpr int size = transform::size;
  constexpr index_t width = lanes<T>;
  T* const taps = right_scratch().template get<T>(9 * ks.size() * width);
  w.pack(taps, 9 * ks.begin, column, 9 * ks.size(), width);
  if constexpr (std::is_same_v<T, float>)
    if (rounds) round_operand(taps, 9 * ks.size() * width, taps);
  vector squares = simd::pset1<vector>(T{0});
  for (index_t c = 0; c < ks.size(); ++c, u += step) {
    vector g[9], half[size * 3];
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t)
      g[t] = simd::ploadu<vector>(taps + ((backwards ? 8 - t : t) * ks.size() + c) * width);
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      transform::template weight<3, 3>(g + j, half + j);
      squares = simd::padd(squares, sum_of_squares(g[j], g[3 + j], g[6 + j]));
    }
#pragma GCC unroll 6
    for (int i = 0; i < size; ++i) {
      vector line[size];
      transform::template weight<1, 1>(half + i * 3, line);
#pragma GCC unroll 6
      for (int j = 0; j < size; ++j) simd::pstoreu(u + (i * size + j) * stride, line[j]);
    }
  }
  return simd::predux(squares) < ordinary_square<T> * static_cast<T>(ks.size());
}

/// Transforms all weights into u, as [position][panel][channel of k][columns]. The element after
/// the first position is a flag: 1 where the weights are out of range, else 0.
template <class T, int M>
void transform_weights(const tap_weights<T>& w, index_t in, index_t out, bool backwards,
                       bool rounds, T* u) {
  constexpr index_t width = lanes<T>, wide = conv_tile<T>::columns;
  std::atomic<bool> bears{true};
  parallel_for(out / width, [&](index_t vectors) {
    const index_t column = vectors * width, panel = column / wide * wide;
    T* const to = u + panel * in + column - panel;
    if (!transform_taps<T, M>(w, {0, in}, column, backwards, rounds, to,
                              std::min(wide, out - panel), position_step<T>(in * out)))
      bears.store(false, std::memory_order_relaxed);
  });
  u[in * out] = bears ? T{0} : T{1};
}

/// m = v u at one position, for these tiles; two panels of weights at a time, while the next ones
/// are prefetched.
template <class T>
void multiply_position(winograd_values<T> v, const T* u, winograd_values<T> m, index_t position,
                       index_t tiles) {
  using tile = conv_tile<T>;
  using rows = fetching<T, micro_panel<T>>;
  constexpr index_t wide = tile::columns, together = 2 * wide;
  const index_t in = v.channels, out = m.channels;
  const index_t fetched = std::min(line_of<T>, 2 * line_of<T> * tile::rows / tiles + 1);
  const T* const weights = u + position * position_step<T>(in * out);
  for (index_t block = 0; block < out; block += together) {
    const index_t end = std::min(out, block + together);
    const T* next = weights + end * in;
    for (index_t i = 0, count; i < tiles; i += count) {
      count = tile::next_rows(tiles - i);
      for (index_t j = block; j < end; j += wide, next += fetched * in) {
        const index_t columns = std::min(wide, out - j);
        tile::multiply(
            micro_call<T, rows, strided_rows<T>>{
                .depth = in,
                .a = {{v.data + position * v.step + i * in, in, 1}, next, fetched},
                .b = weights + j * in,
                .b_step = columns,
                .c = {m.data + position * m.step + i * out + j, out},
                .first = true},
            count, columns);
      }
    }
  }
}

/// How many tiles are transformed at a time: as many as fit into these bytes, in whole
/// micro-panels.
template <class T, int M>
index_t winograd_group(index_t channels, index_t count, index_t bytes) {
  constexpr index_t unit = conv_tile<T>::rows;
  const index_t tile = winograd<T, M>::positions * channels * element_size<T>;
  return std::min(std::max(bytes / tile / unit * unit, 2 * unit), round_up(count, unit));
}

/// Transformed tiles of this size, in bytes, stay in the L2 cache.
constexpr index_t winograd_bytes = 3 << 19;

/// The result for transformed weights, also for an input's gradient.
template <class T, int M>
void winograd_product(const winograd_images<T>& from, const winograd_tiles<M>& tiles,
                      const tap_weights<T>& w, bool backwards, const T* u, T* y, index_t out,
                      const epilogue* after) {
  constexpr index_t positions = winograd<T, M>::positions, unit = conv_tile<T>::rows;
  const index_t threads = num_threads();
  const index_t share = round_up((tiles.count + threads - 1) / threads, unit);
  // Each group of tiles reads all weights: large ones are read as few times as possible.
  const index_t weights = positions * from.channels * out * element_size<T>;
  const index_t group = std::min(
      winograd_group<T, M>(from.channels + out, tiles.count, std::max(winograd_bytes / 2, weights)),
      share);
  const bool all = u[from.channels * out] != T{0};
  parallel_for((tiles.count + group - 1) / group, [&](index_t i) {
    const range some{i * group, std::min(tiles.count, (i + 1) * group)};
    winograd_values<T> v{nullptr, from.channels, position_step<T>(group * from.channels)};
    winograd_values<T> m{nullptr, out, position_step<T>(group * out)};
    // Marks follow the values: a byte per tile.
    v.data = left_scratch().template get<T>(positions * (v.step + m.step) + group);
    m.data = v.data + positions * v.step;
    bool* const marked = reinterpret_cast<bool*>(m.data + positions * m.step);
    std::fill_n(marked, some.size(), false);
    transform_input<T, M>(from, tiles, some, v, marked);
    find_mixed<T, M>(from, tiles, some, marked);
    for (index_t position = 0; position < positions; ++position)
      multiply_position(v, u, m, position, some.size());
    transform_output<T, M>(m, tiles, some, y, out, 0, {from, tiles, w, backwards, marked, all},
                           after);
  });
}

/// The positions of the taps' weights.
struct tap_offsets {
  explicit tap_offsets(index_t stride) {
    for (index_t t = 0; t < 9; ++t) at[t] = t * stride;
  }
  index_t at[9];
};

template <int M, class T>
index_t winograd_weights_size(const conv_sizes& s) {
  return winograd<T, M>::positions * position_step<T>(s.in * s.out);
}
/// The weights of a direction, whose results are the columns.
template <class T>
tap_weights<T> winograd_taps(conv_direction d, const conv_weights<T>& w, const tap_offsets& nine) {
  const bool forward = d == conv_direction::forward;
  return {w.data, forward ? w.in_stride : w.out_stride, forward ? w.out_stride : w.in_stride,
          nine.at, 9};
}
template <int M, class T>
void winograd_weights(const conv_sizes& s, conv_direction d, conv_weights<T> w, T* u) {
  const tap_offsets nine(w.tap_stride);
  const bool forward = d == conv_direction::forward;
  transform_weights<T, M>(winograd_taps(d, w, nine), forward ? s.in : s.out, forward ? s.out : s.in,
                          !forward, s.rounds, u);
}

/// Transformed weights: the cached ones, or those of one call.
template <class T, int M>
class winograd_weights_of {
 public:
  winograd_weights_of(const conv_sizes& s, conv_direction d, const conv_weights<T>& w)
      : data_(w.packed) {
    if (data_) return;
    const auto count = static_cast<std::size_t>(winograd_weights_size<M, T>(s));
    T* const made = static_cast<T*>(memory_.take(count * sizeof(T)));
    winograd_weights<M>(s, d, w, made);
    data_ = made;
  }
  operator const T*() const { return data_; }

 private:
  ::xla::detail::working_memory memory_;
  const T* data_;
};

}  // namespace xla::kernel::detail
