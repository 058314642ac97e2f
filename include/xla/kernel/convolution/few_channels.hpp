// SPDX-License-Identifier: Apache-2.0
#pragma once

// Direct convolutions of images of few channels, such as a network's first. A row of the kernel
// reads its pixels together, and neighbouring results read pieces that are a fixed step apart. So a
// tile is a run of pixels in a line, and reads the image in place. direct.hpp chooses it.

#include <algorithm>
#include <cstdint>

#include "xla/base/compiler.hpp"
#include "xla/kernel/convolution/patches.hpp"
#include "xla/kernel/convolution/sizes.hpp"
#include "xla/kernel/fused/loops.hpp"

namespace xla::kernel::detail {

/// The pieces that neighbouring results read: one per row of the kernel, `length` elements long,
/// `pixel` elements from one neighbour's to the next one's.
template <class T>
struct line_micro_panel {
  const T* const* pieces;
  index_t pixel, length;

  template <int Rows, class F>
  [[gnu::always_inline]] void visit(index_t depth, F f) const {
    const index_t next = pixel;
    for (const T* const* piece = pieces; depth > 0; ++piece, depth -= length) {
      const T* __restrict at = *piece;
      each_step<Rows>(length, [&](index_t) XLA_INLINE_LAMBDA {
        f([&](index_t i) { return at[i * next]; });
        ++at;
      });
    }
  }
};

/// The forward convolution of an image of few channels: each tile computes `unit` pixels of a line
/// of the result.
template <class T>
class few_channels {
 public:
#if defined(__AVX512F__) || defined(__aarch64__)
  static constexpr int unit = 14;  // divides most widths
#else
  static constexpr int unit = tile_rows;
#endif
  using tile = conv_tile<T>;  // for which the weights are packed

  /// Whether a row of the kernel reads its pixels together, and a line of the result is long
  /// enough.
  static bool take(const conv_sizes& s, index_t joined) {
    return joined > 1 && s.out_width >= unit && seen(s) * s.in <= max_block<T>;
  }

  few_channels(const conv_sizes& s, const T* x, const T* packed, T* y)
      : s_(s), x_(x), packed_(packed), y_(y) {}

  void write(const epilogue* after) const {
    const index_t tiles = s_.out_width / unit;
    for_ranges(
        s_.batch * s_.out_height * tiles, unit * s_.out * depth(),
        [&](index_t first, index_t last) {
          for (index_t i = first, end; i < last; i = end) {
            const index_t line = i / tiles;
            end = std::min(last, (line + 1) * tiles);
            const index_t past = end - line * tiles;
            const range some{(i - line * tiles) * unit, past == tiles ? s_.out_width : past * unit};
            make(line, some);
            if (after)
              after->made(line * s_.out_width + some.begin, line * s_.out_width + some.end, s_.out);
          }
        });
  }

 private:
  /// How many pixels of a line of the image a tile reads.
  static index_t seen(const conv_sizes& s) { return (unit - 1) * s.stride[1] + s.kernel[1]; }
  index_t depth() const { return s_.taps() * s_.in; }

  /// Some pixels of a line. Where tiles do not divide the line, the last range has a tile more,
  /// which begins earlier.
  void make(index_t line, range some) const {
    const index_t rows = s_.kernel[0], wide = seen(s_) * s_.in;
    const T** const pieces = left_scratch().template get<const T*>(rows + rows * wide);
    T* const spare = reinterpret_cast<T*>(pieces + rows);
    const index_t y = line % s_.out_height * s_.stride[0] - s_.padding[0];
    for (index_t x = some.begin; x < some.end; x += unit) {
      const index_t first = std::min(x, s_.out_width - unit);
      for (index_t k = 0; k < rows; ++k)
        pieces[k] = piece(line / s_.out_height, y + k * s_.dilation[0],
                          first * s_.stride[1] - s_.padding[1], spare + k * wide);
      multiply(pieces, {y_ + (line * s_.out_width + first) * s_.out, s_.out, unit * s_.out});
    }
  }

  /// A row of an image from pixel x on, as wide as a tile reads.
  const T* piece(index_t image, index_t y, index_t x, T* spare) const {
    if (y < 0 || y >= s_.height) return zero_row<T>;
    const T* const from = x_ + ((image * s_.height + y) * s_.width + x) * s_.in;
    const index_t pixels = seen(s_);
    if (x >= 0 && x + pixels <= s_.width) return from;
    const index_t begin = std::clamp<index_t>(-x, 0, pixels) * s_.in;
    const index_t end = std::clamp<index_t>(s_.width - x, 0, pixels) * s_.in;
    std::fill_n(spare, pixels * s_.in, T{0});
    std::copy(from + begin, from + end, spare + begin);
    return spare;
  }

  void multiply(const T* const* pieces, strided_rows<T> to) const {
    constexpr index_t width = lanes<T>;
    const T* b = packed_;
    for (index_t j = 0; j < s_.out; j += tile::columns) {
      const index_t wide = std::min<index_t>(tile::columns, s_.out - j);
      micro_call<T, line_micro_panel<T>, strided_rows<T>> call{
          .depth = depth(),
          .a = {pieces, s_.stride[1] * s_.in, s_.kernel[1] * s_.in},
          .b = b,
          .b_step = round_up(wide, width),
          .c = to.from(0, j),
          .first = true};
      call.tail = static_cast<int>(wide > width ? wide - width : wide);
      if (wide > width) micro_kernel<unit, 2>(call);
      else micro_kernel<unit, 1>(call);
      b += call.b_step * call.depth;
    }
  }

  const conv_sizes& s_;
  const T* x_;
  const T* packed_;
  T* y_;
};

}  // namespace xla::kernel::detail
