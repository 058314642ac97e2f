// SPDX-License-Identifier: Apache-2.0
#pragma once

// Winograd's algorithm with weights that are transformed for one call, as in training. All of them
// together would go through memory at several times their size: 512 to 512 channels are 9 MB, and
// 38 MB transformed by F(4 x 4). So all tiles are transformed first, and then the weights panel by
// panel, a chunk of k at a time, which stays in the L2 cache until it is multiplied.

#include <algorithm>
#include <cstdint>

#include "xla/kernel/convolution/winograd.hpp"

namespace xla::kernel::detail {

/// How k is cut into chunks of nearly equal length, in whole vectors.
template <class T, int M>
struct winograd_chunks {
  static constexpr index_t positions = winograd<T, M>::positions, wide = conv_tile<T>::columns;
  /// Bytes of transformed weights in the L2 cache; their results take half as much.
  static constexpr index_t bytes = 5 << 18;
  static constexpr index_t column = positions * wide * element_size<T>;

  index_t channels;
  index_t count = (channels * column + bytes - 1) / bytes;
  index_t most = round_up((channels + count - 1) / count, lanes<T>);
  index_t step = position_step<T>(most * wide);  // of transformed weights

  range operator[](index_t i) const { return {i * most, std::min(channels, (i + 1) * most)}; }
  /// The number of tiles whose results for a panel fit as well, in whole micro-panels.
  static constexpr index_t max_tiles() {
    constexpr index_t unit = conv_tile<T>::rows;
    return bytes / 2 / column / unit * unit;
  }
};

/// Whether weights are too large to be transformed at once.
template <class T, int M>
bool transforms_panels(index_t in, index_t out) {
  constexpr index_t most = 3 << 20;
  return winograd<T, M>::positions * in * out * element_size<T> > most;
}

/// All transformed tiles of some images, by chunks: [chunk][position][tile][channel of the chunk].
template <class T, int M>
class chunked_tiles {
 public:
  using chunks = winograd_chunks<T, M>;
  /// With room for this many tiles.
  chunked_tiles(const winograd_images<T>& from, index_t most)
      : cut{from.channels}, from_(from), step_(position_step<T>(most * cut.most)) {
    const index_t all = cut.count * chunks::positions * step_;
    const auto bytes = static_cast<std::size_t>(all) * sizeof(T);
    data_ = static_cast<T*>(memory_.take(bytes + static_cast<std::size_t>(most)));
    marked_ = reinterpret_cast<bool*>(data_ + all);
  }
  /// Marks the tiles that are out of the transforms' range.
  void transform(const winograd_tiles<M>& tiles, range some) {
    std::fill_n(marked_, some.size(), false);
    parallel_for((some.size() + 3) / 4, [&](index_t i) {
      const range few{some.begin + 4 * i, std::min(some.end, some.begin + 4 * i + 4)};
      for (index_t c = 0; c < cut.count; ++c) {
        winograd_images<T> part = from_;
        part.data += cut[c].begin;
        part.channels = cut[c].size();
        winograd_values<T> to = (*this)[c];
        to.data += 4 * i * to.channels;
        transform_input<T, M>(part, tiles, few, to, marked_ + 4 * i);
      }
      find_mixed<T, M>(from_, tiles, few, marked_ + 4 * i);
    });
  }
  winograd_values<T> operator[](index_t c) const {
    return {data_ + c * chunks::positions * step_, cut[c].size(), step_};
  }

  /// Of the tiles that were transformed last.
  const bool* marked() const { return marked_; }

  const chunks cut;

 private:
  const winograd_images<T> from_;
  const index_t step_;
  ::xla::detail::working_memory memory_;
  T* data_;
  bool* marked_;
};

/// Rows of c whose sums continue those of the previous chunk.
template <class T>
struct continued_rows : strided_rows<T> {
  static constexpr bool goes_on = true;
  continued_rows from(index_t row, index_t column) const {
    return {strided_rows<T>::from(row, column)};
  }
};

/// m (+)= v u at all positions, for a chunk of k and a panel of these columns. The following tiles
/// are prefetched, as all tiles are too many for the L2 cache.
template <class T, int M>
void multiply_panel(winograd_values<T> v, const T* u, index_t u_step, winograd_values<T> m,
                    index_t tiles, bool first) {
  using tile = conv_tile<T>;
  constexpr index_t line = line_of<T>;
  const index_t channels = v.channels;
  for (index_t position = 0; position < winograd<T, M>::positions; ++position) {
    const T* at = v.data + position * v.step;
    for (index_t i = 0, rows = 0; i < tiles; i += rows, at += rows * channels) {
      rows = tile::next_rows(tiles - i);
      const bool last = i + rows == tiles;
      tile::multiply(
          micro_call<T, fetching<T, micro_panel<T>>, continued_rows<T>>{
              .depth = channels,
              .a = {{at, channels, 1},
                    last ? v.data + (position + 1) * v.step : at + rows * channels,
                    std::min<index_t>(tile::rows, line)},
              .b = u + position * u_step,
              .b_step = m.channels,
              .c = {{m.data + position * m.step + i * m.channels, m.channels}},
              .first = first},
          rows, m.channels);
    }
  }
}

/// Reports the rows of finished tiles.
template <int M>
void notify_tiles(const epilogue& after, const winograd_tiles<M>& tiles, range some,
                  index_t channels) {
  const index_t first = some.begin / tiles.columns;
  parallel_for((some.end - 1) / tiles.columns - first + 1, [&](index_t i) {
    const index_t tile = (first + i) * tiles.columns;
    notify_row(after, tiles, std::max(tile, some.begin),
               std::min(tile + tiles.columns, some.end) - 1, channels);
  });
}

template <class T, int M>
void multiply_by_panels(const winograd_images<T>& from, const winograd_tiles<M>& tiles,
                        const tap_weights<T>& w, bool backwards, T* y, index_t out,
                        const epilogue* after) {
  using chunks = winograd_chunks<T, M>;
  constexpr index_t wide = chunks::wide, positions = chunks::positions;
  const index_t most = std::min(tiles.count, chunks::max_tiles());
  chunked_tiles<T, M> v(from, most);
  for (index_t tile = 0; tile < tiles.count; tile += most) {
    const range some{tile, std::min(tiles.count, tile + most)};
    v.transform(tiles, some);
    parallel_for((out + wide - 1) / wide, [&](index_t panel) {
      const index_t column = panel * wide, columns = std::min(wide, out - column);
      winograd_values<T> m{nullptr, columns, position_step<T>(most * wide)};
      T* const u = left_scratch().template get<T>(positions * (v.cut.step + m.step));
      m.data = u + positions * v.cut.step;
      bool all = false;
      for (index_t c = 0; c < v.cut.count; ++c) {
        for (index_t j = 0; j < columns; j += lanes<T>)
          all |= !transform_taps<T, M>(w, v.cut[c], column + j, backwards, from.rounds, u + j,
                                       columns, v.cut.step);
        multiply_panel<T, M>(v[c], u, v.cut.step, m, some.size(), c == 0);
      }
      transform_output<T, M>(m, tiles, some, y + column, out, column,
                             {from, tiles, w, backwards, v.marked(), all}, nullptr);
    });
    if (after != nullptr) notify_tiles(*after, tiles, some, out);
  }
}

template <class T, int M>
void winograd_multiply(const conv_sizes& s, conv_direction d, const winograd_images<T>& from,
                       const winograd_tiles<M>& tiles, const conv_weights<T>& w, T* y, index_t out,
                       const epilogue* after) {
  const tap_offsets nine(w.tap_stride);
  const tap_weights<T> taps = winograd_taps(d, w, nine);
  const bool backwards = d == conv_direction::input_gradient;
  if (!w.packed && transforms_panels<T, M>(s.in, s.out))
    return multiply_by_panels<T, M>(from, tiles, taps, backwards, y, out, after);
  winograd_product<T, M>(from, tiles, taps, backwards, winograd_weights_of<T, M>(s, d, w), y, out,
                         after);
}

template <int M, class T>
void winograd_forward(const conv_sizes& s, const T* x, conv_weights<T> w, T* y,
                      const epilogue* after) {
  winograd_multiply<T, M>(s, conv_direction::forward,
                          {x, s.height, s.width, s.in, s.padding[0], s.padding[1], s.in, s.rounds},
                          {s.batch, s.out_height, s.out_width}, w, y, s.out, after);
}

template <int M, class T>
void winograd_input_gradient(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx,
                             const epilogue* after) {
  winograd_multiply<T, M>(
      s, conv_direction::input_gradient,
      {dy, s.out_height, s.out_width, s.out, 2 - s.padding[0], 2 - s.padding[1], s.out, s.rounds},
      {s.batch, s.height, s.width}, w, dx, s.in, after);
}

}  // namespace xla::kernel::detail
