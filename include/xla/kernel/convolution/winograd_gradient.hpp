// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weight's gradient by Winograd's algorithm: at each position of the transformed tiles a
// product whose k is the tiles. algorithms.hpp chooses it; if a tile is out of the transforms'
// range, the direct sums of weight_gradient.hpp run instead.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "xla/kernel/convolution/winograd_panels.hpp"

namespace xla::kernel::detail {

/// Whether a tile of the result's gradient is out of the transforms' range.
template <bool Rounds, class T, int M>
[[gnu::cold]] bool gradient_is_mixed(const T* corner, index_t pixel, const winograd_tiles<M>& tiles,
                                     typename winograd_tiles<M>::position tile, index_t channels) {
  const index_t rows = std::min<index_t>(M, tiles.height - tile.y);
  const index_t columns = std::min<index_t>(M, tiles.width - tile.x);
  const T* at[M * M];
  for (index_t i = 0; i < M; ++i)
    for (index_t j = 0; j < M; ++j)
      at[i * M + j] =
          i < rows && j < columns ? corner + (i * tiles.width + j) * pixel : zero_row<T>;
  return is_mixed<M, 1>(at, channels, rows, columns, &load_operand<Rounds, T>);
}

/// Transforms the result's gradient, whose pixels are `pixel` elements apart, to
/// [position][panel][tile] [columns], with room for `most` tiles. Returns whether all tiles are in
/// range.
template <bool Rounds, class T, int M>
bool transform_gradient(const T* dy, index_t pixel, const winograd_tiles<M>& tiles, range some,
                        winograd_values<T> to, index_t first, index_t most) {
  using transform = winograd<T, M>;
  using vector = packet<T>;
  constexpr int size = transform::size;
  constexpr index_t columns = outer_tile<T>::columns;
  const T ordinary = ordinary_square<T> * static_cast<T>(to.channels);
  for (index_t tile = some.begin; tile < some.end; ++tile) {
    const auto [image, top, left] = tiles[tile];
    const T* const corner = dy + ((image * tiles.height + top) * tiles.width + left) * pixel;
    vector squares = simd::pset1<vector>(T{0});
    for (index_t k = 0; k < to.channels; k += lanes<T>) {
      vector half[size * M];
#pragma GCC unroll 4
      for (int j = 0; j < M; ++j) {
        vector d[M];
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i)
          d[i] = top + i < tiles.height && left + j < tiles.width
                     ? load_operand<Rounds>(corner + (i * tiles.width + j) * pixel + k)
                     : simd::pset1<vector>(T{0});
        transform::template output_gradient<1, M>(d, half + j);
      }
      const index_t panel = k / columns * columns, wide = std::min(columns, to.channels - panel);
      T* const result = to.data + panel * most + (tile - first) * wide + k - panel;
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) {
        vector m[size];
        transform::template output_gradient<1, 1>(half + i * M, m);
#pragma GCC unroll 6
        for (int j = 0; j < size; ++j) simd::pstoreu(result + (i * size + j) * to.step, m[j]);
        if (i == 1 || i == 2)  // which uses every pixel
          squares = simd::pmadd(m[1], m[1], simd::pmadd(m[2], m[2], squares));
      }
    }
    if (!(simd::predux(squares) < ordinary) &&
        gradient_is_mixed<Rounds>(corner, pixel, tiles, tiles[tile], to.channels))
      return false;
  }
  return true;
}

template <class T, int M>
bool transform_gradient(bool rounds, const T* dy, index_t pixel, const winograd_tiles<M>& tiles,
                        range some, winograd_values<T> to, index_t first, index_t most) {
  bool all = true;
  with_rounding<T>(rounds, [&](auto constant) {
    all = transform_gradient<constant.value>(dy, pixel, tiles, some, to, first, most);
  });
  return all;
}

/// A vector of columns of the weight's gradient, for channels ks of all `in`, from the values at
/// each position: channels `step` apart, positions `stride`.
template <class T, int M>
void transform_back(const T* du, index_t step, index_t stride, range ks, index_t in, T* dw) {
  using transform = winograd<T, M>;
  using vector = packet<T>;
  constexpr int size = transform::size;
  constexpr index_t width = lanes<T>;
  T* const taps = right_scratch().template get<T>(9 * ks.size() * width);
  for (index_t c = 0; c < ks.size(); ++c, du += step) {
    vector half[3 * size];
#pragma GCC unroll 6
    for (int j = 0; j < size; ++j) {
      vector u[size];
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) u[i] = simd::ploadu<vector>(du + (i * size + j) * stride);
      transform::template weight_gradient<1, size>(u, half + j);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      vector g[3];
      transform::template weight_gradient<1, 1>(half + i * size, g);
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) simd::pstoreu(taps + ((i * 3 + j) * ks.size() + c) * width, g[j]);
    }
  }
  transpose_rows(dw + 9 * ks.begin, 9 * in, width, 9 * ks.size(),
                 panel_cursor<T>{taps, 9, ks.size(), width});
}

/// du (+)= v^T m at one position, for channels v and the columns of a panel, of these tiles; the
/// following part of v is prefetched if it is not in the cache.
template <class T>
void multiply_tiles(const T* v, index_t channels, const T* m, index_t columns, index_t tiles,
                    bool first, bool fetches, T* du) {
  using tile = outer_tile<T>;
  const channel_blocks<T> blocks{channels};
  const pixel_run<T> run{v, m, tiles};
  upcoming_run<T> next;
  if (fetches) next = {v + tiles * channels, tiles * channels, blocks.count};
  for (index_t i = 0; i < blocks.count; ++i) {
    next.fetch();
    tile::of(blocks.height(i), columns)({&run, 1, i * blocks.most, channels, columns},
                                        du + i * blocks.most * columns, first);
  }
}

/// In groups of tiles that fit the L2 cache, each added to all of du. Returns whether all tiles are
/// in range; otherwise dw is not computed.
template <int M, class T>
[[nodiscard]] bool gradient_by_groups(const winograd_images<T>& from,
                                      const winograd_tiles<M>& tiles, const T* dy, index_t out,
                                      T* dw) {
  constexpr index_t positions = winograd<T, M>::positions, wide = outer_tile<T>::columns;
  constexpr index_t width = lanes<T>;
  const index_t in = from.channels, u_step = position_step<T>(in * out);
  // By shape alone, because the sums of a group are one term of the whole.
  const index_t fit = winograd_group<T, M>(in + out, tiles.count, winograd_bytes);
  const index_t group = std::min(tiles.count, std::max<index_t>(fit, 96));
  winograd_values<T> v{nullptr, in, position_step<T>(group * in)};
  winograd_values<T> m{nullptr, out, position_step<T>(group * out)};
  ::xla::detail::working_memory memory;
  v.data = static_cast<T*>(
      memory.take(static_cast<std::size_t>(positions * (v.step + m.step + u_step)) * sizeof(T)));
  m.data = v.data + positions * v.step;
  T* const du = m.data + positions * m.step;
  std::atomic<bool> bears{true};
  for (index_t first = 0; first < tiles.count; first += group) {
    const range all{first, std::min(tiles.count, first + group)};
    parallel_for((all.size() + 3) / 4, [&](index_t i) {
      const range some{first + 4 * i, std::min(all.end, first + 4 * i + 4)};
      bool marked[4] = {};
      transform_input<T, M>(from, tiles, some, {v.data + 4 * i * in, in, v.step}, marked);
      find_mixed<T, M>(from, tiles, some, marked);
      const bool bear = transform_gradient(from.rounds, dy, out, tiles, some, m, first, group);
      if (!bear || any_marked(marked, 4)) bears.store(false, std::memory_order_relaxed);
    });
    if (!bears) return false;
    const index_t panels = (out + wide - 1) / wide;
    parallel_for(positions * panels, [&](index_t i) {
      const index_t position = i / panels, column = i % panels * wide;
      multiply_tiles(v.data + position * v.step, in, m.data + position * m.step + column * group,
                     std::min(wide, out - column), all.size(), first == 0, false,
                     du + position * u_step + column * in);
    });
  }
  parallel_for(out / width, [&](index_t i) {
    const index_t column = i * width, panel = column / wide * wide;
    transform_back<T, M>(du + panel * in + column - panel, std::min(wide, out - panel), u_step,
                         {0, in}, in, dw + column * 9 * in);
  });
  return true;
}

/// The number of transformed tiles computed at once, at most.
constexpr index_t max_gradient_bytes = 1 << 25;

/// With all tiles at once: panel by panel of du, which then stays in the L2 cache. Returns the
/// same.
template <int M, class T>
[[nodiscard]] bool gradient_by_panels(const winograd_images<T>& from,
                                      const winograd_tiles<M>& tiles, const T* dy, index_t out,
                                      T* dw) {
  using chunks = winograd_chunks<T, M>;
  constexpr index_t positions = chunks::positions, wide = outer_tile<T>::columns, width = lanes<T>;
  static_assert(wide <= chunks::wide);
  const index_t parts = (tiles.count + 191) / 192, some = (tiles.count + parts - 1) / parts;
  chunked_tiles<T, M> v(from, tiles.count);
  v.transform(tiles, {0, tiles.count});
  if (any_marked(v.marked(), tiles.count)) return false;
  std::atomic<bool> bears{true};
  parallel_for((out + wide - 1) / wide, [&](index_t panel) {
    const index_t column = panel * wide, columns = std::min(wide, out - column);
    winograd_values<T> m{nullptr, columns, position_step<T>(tiles.count * wide)};
    T* const du = left_scratch().template get<T>(positions * (v.cut.step + m.step));
    m.data = du + positions * v.cut.step;
    if (!transform_gradient(from.rounds, dy + column, out, tiles, {0, tiles.count}, m, 0,
                            tiles.count))
      return bears.store(false, std::memory_order_relaxed);
    for (index_t c = 0; c < v.cut.count; ++c) {
      const winograd_values<T> x = v[c];
      for (index_t position = 0; position < positions; ++position)
        for (index_t i = 0; i < tiles.count; i += some)
          multiply_tiles(x.data + position * x.step + i * x.channels, x.channels,
                         m.data + position * m.step + i * columns, columns,
                         std::min(some, tiles.count - i), i == 0, true, du + position * v.cut.step);
      for (index_t j = 0; j < columns; j += width)
        transform_back<T, M>(du + j, columns, v.cut.step, v.cut[c], from.channels,
                             dw + (column + j) * 9 * from.channels);
    }
  });
  return bears;
}

/// Direct sums of operands that are rounded as Winograd's algorithm would round them.
template <class T>
[[gnu::cold]] void direct_gradient_as_read(const conv_sizes& s, const T* x, const T* dy, T* dw) {
  if constexpr (std::is_same_v<T, float>)
    if (s.rounds) {
      const rounded_copy<> seen(x, s.batch * s.height * s.width * s.in);
      const rounded_copy<> back(dy, s.batch * s.out_height * s.out_width * s.out);
      return direct_weight_gradient(s, seen.data(), back.data(), dw);
    }
  direct_weight_gradient(s, x, dy, dw);
}

template <int M, class T>
void winograd_weight_gradient(const conv_sizes& s, const T* x, const T* dy, T* dw) {
  const winograd_tiles<M> tiles{s.batch, s.out_height, s.out_width};
  const winograd_images<T> from{x,    s.height, s.width, s.in, s.padding[0], s.padding[1],
                                s.in, s.rounds};
  const index_t bytes = winograd<T, M>::positions * tiles.count * s.in * element_size<T>;
  bool made = false;
  if (transforms_panels<T, M>(s.in, s.out) && bytes <= max_gradient_bytes)
    made = gradient_by_panels<M>(from, tiles, dy, s.out, dw);
  else made = gradient_by_groups<M>(from, tiles, dy, s.out, dw);
  if (!made) direct_gradient_as_read(s, x, dy, dw);
}

}  // namespace xla::kernel::detail
