// SPDX-License-Identifier: Apache-2.0
#pragma once

// A convolution as a product without im2col. A row of the left operand consists of the pixels under
// the taps at one pixel of the result, read in place; the right operand is the weights, packed as
// panels. Both order k by blocks of channels, and within a block tap by tap. Then a block of the
// weights is contiguous for each channel of the result, and reads a small part of the images.
// direct.hpp multiplies them.

#include <algorithm>
#include <cstdint>

#include "xla/base/compiler.hpp"
#include "xla/kernel/gemm/gemm.hpp"

namespace xla::kernel::detail {

#if defined(__AVX512F__) || defined(__aarch64__)
template <class T>
using conv_tile = tile<T, 12, 2>;
#else
template <class T>
using conv_tile = tile<T>;
#endif

/// The most elements along k in one block.
template <class T>
constexpr index_t max_block = 4608 / element_size<T>;

/// The number of channels in a block of k: blocks hold whole channels and are nearly equal. With
/// many taps they are up to twice as long, because a kernel loads pointers for each tap: 32
/// channels of 64 taps take 0.91 of the time of 18 (a Zen 4, 2026-11-30).
template <class T>
constexpr index_t channel_block(index_t taps, index_t channels) {
  const index_t most = std::clamp(32 * taps, max_block<T>, 2 * max_block<T>);
  const index_t blocks = (taps * channels + most - 1) / most;
  return blocks <= 1 ? std::max<index_t>(channels, 1) : (channels + blocks - 1) / blocks;
}

/// A position in the kernel: its distance from a pixel in rows and columns, and in elements.
struct tap {
  index_t y, x, offset;
};

/// Winograd's algorithm is used up to this number of channels.
constexpr index_t max_winograd_channels = 1024;

/// Up to so many taps, each adds its product even where it sees zeros alone, so that weights that
/// are not finite give NaN there, as in Winograd's algorithm.
constexpr index_t few_taps = 9;

/// Zeros in place of pixels outside of the image.
template <class T>
alignas(64) inline const T zero_row[std::max(max_block<T>, max_winograd_channels)] = {};

/// The left operand of a convolution: row i holds the pixels under the taps at pixel i of a grid,
/// which is pixel (y * step_y, x * step_x) of an image.
template <class T>
struct patches {
  const T* images;
  index_t height, width, pixel;           // in pixels; in elements from one to the next in a row
  index_t rows, columns, step_y, step_x;  // of the grid
  const tap* taps;
  index_t count;     // of taps
  index_t channels;  // that a tap reads, of `joined` contiguous pixels
  index_t joined;
  index_t block = channel_block<T>(count, channels);
  tap first = corner([](index_t a, index_t b) { return std::min(a, b); });
  tap last = corner([](index_t a, index_t b) { return std::max(a, b); });

  template <class F>
  tap corner(F&& f) const {
    tap all = taps[0];
    for (index_t t = 1; t < count; ++t) all = {f(all.y, taps[t].y), f(all.x, taps[t].x), 0};
    return all;
  }

  struct position {
    index_t image, y, x;
  };
  position position_of(index_t row) const {
    const index_t line = row / columns;
    return {line / rows, line % rows * step_y, row % columns * step_x};
  }
  void go_on(position& at, index_t pixels = 1) const {
    if ((at.x += pixels * step_x) < columns * step_x) return;
    at.x = 0;
    if ((at.y += step_y) < rows * step_y) return;
    at.y = 0;
    ++at.image;
  }
  index_t index_of(const position& at) const {
    return ((at.image * height + at.y) * width + at.x) * pixel;
  }

  /// Pointers to the pieces, in a table in this thread's memory. Pieces that an image's border cuts
  /// are copied after it.
  pointer_micro_panel<T> read(range some, range ks) const {
    const index_t n = some.size(), length = ks.size() / count, channel = ks.begin / count;
    const index_t cut = joined > 1 ? n * count * length : 0;
    constexpr auto unit = static_cast<index_t>(sizeof(const T*));
    const index_t room = (cut * element_size<T> + unit - 1) / unit;
    const T** const table = left_scratch().template get<const T*>(n * count + room);
    T* spare = reinterpret_cast<T*>(table + n * count);
    position at = position_of(some.begin);
    for (index_t i = 0, run; i < n; i += run, go_on(at, run)) {
      const index_t from = index_of(at) + channel;
      run = std::min(n - i, inside(at));
      for (index_t t = 0; t < count && run > 0; ++t) {
        const T* to = images + from + taps[t].offset;
        for (const T **p = table + t * n + i, **end = p + run; p < end; to += step_x * pixel)
          *p++ = to;
      }
      if (run > 0) continue;
      run = 1;
      for (index_t t = 0; t < count; ++t)
        table[t * n + i] = joined == 1 ? pixel_under(at, taps[t], from)
                                       : piece(at, taps[t], from + taps[t].offset, spare);
    }
    return {table, n, length, 0, count > few_taps ? zero_row<T> : nullptr};
  }

  /// The most recently read table, its pointers advanced by all channels of a tap.
  pointer_micro_panel<T> further(index_t rows) const {
    const T** const table = left_scratch().template get<const T*>(rows * count);
    for (index_t i = 0; i < rows * count; ++i) table[i] += channels;
    return {table, rows, channels, 0};
  }

  /// Blocks of k are whole blocks of channels.
  index_t grain() const { return count * block; }

  /// The last image row that the next tile reads.
  upcoming<T> ahead(range next, range ks, index_t shares) const {
    if (next.size() <= 0 || joined > 1) return {};
    position at = position_of(next.begin);
    at.y = std::clamp<index_t>(at.y + last.y, 0, height - 1);
    at.x = std::clamp<index_t>(at.x + last.x, 0, width - 1);
    return {images + index_of(at) + ks.begin / count, step_x * pixel, next.size(),
            ks.size() / count, shares};
  }

 private:
  /// How many pixels of the line from this one on have no pixel of the image under a tap.
  index_t inside(const position& at) const {
    if (at.y + first.y < 0 || at.y + last.y >= height || at.x + first.x < 0) return 0;
    const index_t room = std::min(width - joined - last.x, (columns - 1) * step_x) - at.x;
    return room < 0 ? 0 : room / step_x + 1;
  }
  const T* pixel_under(const position& at, const tap& t, index_t from) const {
    const auto is_in = [](index_t i, index_t size) {
      return static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(size);
    };
    const bool there = is_in(at.y + t.y, height) && is_in(at.x + t.x, width);
    return there ? images + from + t.offset : zero_row<T>;
  }
  /// The joined pixels under a tap near the border.
  [[gnu::noinline]] const T* piece(const position& at, const tap& t, index_t from,
                                   T*& spare) const {
    const index_t y = at.y + t.y, x = at.x + t.x;
    if (y < 0 || y >= height || x + joined <= 0 || x >= width) return zero_row<T>;
    if (x >= 0 && x + joined <= width) return images + from;
    const index_t begin = std::max<index_t>(-x, 0) * pixel;
    const index_t end = std::min(joined, width - x) * pixel;
    std::fill_n(spare, begin, T{0});
    std::copy(images + from + begin, images + from + end, spare + begin);
    std::fill(spare + end, spare + channels, T{0});
    spare += channels;
    return spare - channels;
  }
};

#if defined(__GNUC__) && !defined(__clang__)
// A packet as a template argument loses attributes that nothing here relies on.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

/// Transposes up to a vector of columns: the elements 0, 1, … along k of these columns are written
/// as vectors, padded with zeros, to the addresses that next() returns.
template <class T, class Next>
void transpose_columns(const T* from, index_t column, index_t columns, index_t depth, Next next) {
  using vector = packet<T>;
  constexpr index_t width = lanes<T>;
  for (index_t k = 0; k < depth; k += width) {
    const index_t steps = std::min(width, depth - k);
    square<T> block;
#pragma GCC unroll 16
    for (index_t q = 0; q < width; ++q) {
      const T* const at = from + q * column + k;
      block.packet[q] = q >= columns     ? simd::pset1<vector>(T{0})
                        : steps == width ? simd::ploadu<vector>(at)
                                         : load_part<T>(at, steps);
    }
    transpose<T>(block);
#pragma GCC unroll 16
    for (index_t q = 0; q < width; ++q)
      if (q < steps) simd::pstoreu(next(), block.packet[q]);
  }
}

/// The reverse: next() provides vectors of `columns` columns, which are written so that k is
/// contiguous.
template <class T, class Next>
void transpose_rows(T* to, index_t column, index_t columns, index_t depth, Next next) {
  using vector = packet<T>;
  constexpr index_t width = lanes<T>;
  for (index_t k = 0; k < depth; k += width) {
    const index_t steps = std::min(width, depth - k);
    square<T> block;
#pragma GCC unroll 16
    for (index_t q = 0; q < width; ++q)
      block.packet[q] = q < steps ? simd::ploadu<vector>(next()) : simd::pset1<vector>(T{0});
    transpose<T>(block);
#pragma GCC unroll 16
    for (index_t q = 0; q < width; ++q) {
      T* const at = to + q * column + k;
      if (q >= columns) continue;
      if (steps == width) simd::pstoreu(at, block.packet[q]);
      else store_part<T>(at, block.packet[q], steps);
    }
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Rows (tap, channel) of a panel, all taps of a channel one after another.
template <class T>
struct panel_cursor {
  T* panel;
  index_t taps, channels, wide, t = 0, c = 0;
  T* operator()() {
    T* const at = panel + (t * channels + c) * wide;
    if (++t == taps) t = 0, ++c;
    return at;
  }
};

/// Weights of some taps: element (channel c of k, tap t, column j) is
/// data[c * step + j * column + offsets[t]].
template <class T>
struct tap_weights {
  const T* data;
  index_t step, column;
  const index_t* offsets;
  index_t count;
  const T* packed = nullptr;
  bool in_order =
      std::all_of(offsets, offsets + count,
                  [&, t = index_t{0}](index_t offset) mutable { return offset == t++; });

  void pack(T* to, index_t k, index_t first, index_t depth, index_t columns) const {
    constexpr index_t width = lanes<T>;
    const index_t wide = round_up(columns, width), n = depth / count;
    const T* from = data + k / count * step + first * column;
    for (index_t j = 0; j < wide; j += width, to += width, from += width * column) {
      const index_t some = std::min(width, columns - j);
      if (in_order && step == count)
        transpose_columns(from, column, some, depth, panel_cursor<T>{to, count, n, wide});
      else if (in_order && column == count && count > 1)
        for (index_t c = 0; c < n; ++c) {
          fetch(from + (c + 6) * step, some * count);
          transpose_columns(from + c * step, column, some, count,
                            panel_cursor<T>{to + c * wide, count, n, wide});
        }
      else pick(to, from, n, wide, some);
    }
  }

 private:
  /// Prefetches pieces that are far apart, which the hardware prefetcher does not anticipate: 512
  /// -> 512, 7 x 7, batch 1 takes 13 % longer without.
  static void fetch(const T* from, index_t length) {
    for (index_t i = 0; i < length; i += line_of<T>) XLA_PREFETCH(from + i, 0, 3);
  }
  void pick(T* to, const T* from, index_t n, index_t wide, index_t columns) const {
    constexpr index_t width = lanes<T>;
    for (index_t t = 0; t < count; ++t)
      for (index_t c = 0; c < n; ++c, to += wide) {
        const T* const row = from + c * step + offsets[t];
        if (column == 1 && columns == width) simd::pstoreu(to, simd::ploadu<packet<T>>(row));
        else
          for (index_t q = 0; q < width; ++q) to[q] = q < columns ? row[q * column] : T{0};
      }
  }
};

/// Products of patches and weights of a group in their own type. For rounded operands dot_patches
/// of dot.hpp takes its place.
struct plain_patch_products {
  template <class T, class Result>
  static void multiply(const patches<T>& a, const tap_weights<T>& b, index_t m, index_t n, Result c,
                       const epilogue* after) {
    detail::multiply(product<conv_tile<T>, patches<T>, tap_weights<T>, Result>{
        m, n, a.count * a.channels, a, b, c, after});
  }
  /// The number of elements of packed weights.
  template <class Weights>
  static index_t size(const Weights& w) {
    return w.size();
  }
  template <class Weights, class T>
  static void pack(const Weights& w, T* to) {
    w.pack(to);
  }
};

}  // namespace xla::kernel::detail
