// SPDX-License-Identifier: Apache-2.0
#pragma once

// Input gradients of images of few channels, which would leave most of a vector empty. The columns
// of the product are all channels of all pixels of a block, its rows are blocks, and k is
// everything that these pixels depend on. A weight is 0 for a pixel that does not depend on an
// element that others of its block do. direct.hpp chooses it if it is cheaper.

#include <algorithm>
#include <cstdint>

#include "xla/kernel/convolution/patches.hpp"
#include "xla/kernel/convolution/sizes.hpp"
#include "xla/kernel/gemm/gemm.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel::detail {

/// How an axis of an image is cut into blocks. The first begins `shift` before the image, so that
/// blocks begin at the pixel under the first tap at one position.
struct block_axis {
  index_t kernel, stride, padding;
  index_t size;  // pixels of a block, a multiple of the stride

  index_t seen() const { return size / stride + (kernel - 1) / stride; }
  index_t shift() const { return padding % stride; }
  index_t count(index_t pixels) const { return (pixels + shift() + size - 1) / size; }
  /// The offset of the first element that a block depends on, from its own position.
  index_t first() const { return padding / stride - (kernel - 1) / stride; }
  /// The tap that connects the pixel with the i-th of these elements, or one outside of the kernel.
  index_t tap(index_t pixel, index_t i) const {
    return pixel - (i - (kernel - 1) / stride) * stride;
  }
};

struct pixel_blocks {
  block_axis y, x;
  index_t channels;

  index_t pixels() const { return y.size * x.size; }
  index_t seen() const { return y.seen() * x.seen(); }
  /// Of the product, in whole vectors.
  template <class T>
  index_t columns() const {
    return round_up(pixels() * channels, lanes<T>);
  }
  /// Multiply-adds of vectors for a pixel and a channel of the result's gradient.
  template <class T>
  double work() const {
    return static_cast<double>(seen() * columns<T>()) / static_cast<double>(pixels() * lanes<T>);
  }
};

/// The cheapest blocks of up to four pixels in a row.
template <class T>
pixel_blocks best_blocks(const conv_sizes& s) {
  const auto blocks = [&](index_t i) {
    const auto axis = [&](int a, index_t times) {
      return block_axis{s.kernel[a], s.stride[a], s.padding[a], s.stride[a] * times};
    };
    return pixel_blocks{axis(0, 1 + i % 2), axis(1, index_t{1} << i / 2), s.in};
  };
  pixel_blocks best = blocks(0);
  for (index_t i = 1; i < 6; ++i)
    if (blocks(i).template work<T>() < best.work<T>()) best = blocks(i);
  return best;
}

/// Whether blocks are clearly cheaper than products of pixels, each with its own taps.
template <class T>
bool has_pixel_blocks(const conv_sizes& s) {
  if (s.groups != 1 || s.dilation[0] * s.dilation[1] != 1 || !is_vector<T>) return false;
  const double alone = static_cast<double>(s.taps() * round_up(s.in, lanes<T>)) /
                       static_cast<double>(s.stride[0] * s.stride[1] * lanes<T>);
  return best_blocks<T>(s).template work<T>() < 0.8 * alone;
}

/// Weights as (element, channel of the result, column).
template <class T>
void spread_weights(const pixel_blocks& b, conv_weights<T> w, index_t out, T* to) {
  const index_t columns = b.columns<T>();
  std::fill_n(to, b.seen() * out * columns, T{0});
  for (index_t seen = 0; seen < b.seen(); ++seen)
    for (index_t pixel = 0; pixel < b.pixels(); ++pixel) {
      const index_t ky = b.y.tap(pixel / b.x.size, seen / b.x.seen());
      const index_t kx = b.x.tap(pixel % b.x.size, seen % b.x.seen());
      if (ky < 0 || ky >= b.y.kernel || kx < 0 || kx >= b.x.kernel) continue;
      const T* const from = w.data + (ky * b.x.kernel + kx) * w.tap_stride;
      for (index_t o = 0; o < out; ++o)
        for (index_t i = 0; i < b.channels; ++i)
          to[(seen * out + o) * columns + pixel * b.channels + i] =
              from[o * w.out_stride + i * w.in_stride];
    }
}

/// Copies blocks to one row of an image: each has `length` elements, the first begins `skip` before
/// the row. There is room for a vector after the last block.
template <class T>
void lay_row(const T* from, index_t columns, index_t length, index_t skip, T* row, index_t end) {
  constexpr index_t width = lanes<T>;
  for (index_t at = -skip; at < end; at += length, from += columns)
    for (index_t i = 0; i < length; i += width) {
      // The next vector overwrites what was stored beyond a block.
      if (at + i >= 0 && at + i + width <= end)
        simd::pstoreu(row + at + i, simd::ploadu<packet<T>>(from + i));
      else
        for (index_t j = i; j < std::min(length, i + width); ++j)
          if (at + j >= 0 && at + j < end) row[at + j] = from[j];
    }
}

/// The input gradient by blocks of pixels: one product of blocks and weights, then a copy of the
/// blocks to rows of the image.
template <class T, class Products = plain_patch_products>
class block_gradient {
 public:
  block_gradient(const conv_sizes& s, conv_weights<T> w)
      : s_(s), blocks_(best_blocks<T>(s)), columns_(blocks_.columns<T>()) {
    const index_t seen = blocks_.seen(), weights = seen * s.out * columns_;
    constexpr auto unit = sizeof(T);
    const auto taps = static_cast<std::size_t>(seen) * (sizeof(tap) + sizeof(index_t));
    taps_ = static_cast<tap*>(memory_.take(taps + static_cast<std::size_t>(weights) * unit));
    offsets_ = reinterpret_cast<index_t*>(taps_ + seen);
    weights_ = reinterpret_cast<T*>(offsets_ + seen);
    spread_weights(blocks_, w, s.out, weights_);
    for (index_t i = 0; i < seen; ++i) {
      const index_t y = blocks_.y.first() + i / blocks_.x.seen();
      const index_t x = blocks_.x.first() + i % blocks_.x.seen();
      taps_[i] = {y, x, (y * s.out_width + x) * s.out};
      offsets_[i] = i * s.out * columns_;
    }
  }

  /// Images whose blocks together stay in the L2 cache.
  void write(const T* dy, T* dx, const epilogue* after) const {
    constexpr index_t most = (index_t{1} << 20) / static_cast<index_t>(sizeof(T));
    const index_t image = down() * across() * columns_;
    const index_t some = std::clamp<index_t>(most / image, 1, s_.batch);
    ::xla::detail::working_memory memory;
    const index_t all = some * image + lanes<T>;
    T* const blocks = static_cast<T*>(memory.take(static_cast<std::size_t>(all) * sizeof(T)));
    for (index_t i = 0; i < s_.batch; i += some) {
      const index_t images = std::min(some, s_.batch - i);
      multiply_blocks(dy + i * s_.out_height * s_.out_width * s_.out, images, blocks);
      lay(blocks, images, i * s_.height, dx, after);
    }
  }

 private:
  index_t down() const { return blocks_.y.count(s_.height); }
  index_t across() const { return blocks_.x.count(s_.width); }

  void multiply_blocks(const T* dy, index_t images, T* to) const {
    const patches<T> a{.images = dy,
                       .height = s_.out_height,
                       .width = s_.out_width,
                       .pixel = s_.out,
                       .rows = down(),
                       .columns = across(),
                       .step_y = blocks_.y.size / s_.stride[0],
                       .step_x = blocks_.x.size / s_.stride[1],
                       .taps = taps_,
                       .count = blocks_.seen(),
                       .channels = s_.out,
                       .joined = 1};
    Products::multiply(a, tap_weights<T>{weights_, columns_, 1, offsets_, blocks_.seen()},
                       images * down() * across(), columns_, strided_rows<T>{to, columns_},
                       nullptr);
  }

  /// To the rows from `top` on.
  void lay(const T* blocks, index_t images, index_t top, T* dx, const epilogue* after) const {
    const index_t line = s_.width * s_.in, length = blocks_.x.size * s_.in;
    for_ranges(images * s_.height, line, [&](index_t first, index_t last) {
      for (index_t i = first; i < last; ++i) {
        const index_t y = i % s_.height + blocks_.y.shift();
        const index_t row = i / s_.height * down() + y / blocks_.y.size;
        lay_row(blocks + row * across() * columns_ + y % blocks_.y.size * length, columns_, length,
                blocks_.x.shift() * s_.in, dx + (top + i) * line, line);
        if (after) after->made((top + i) * s_.width, (top + i + 1) * s_.width, s_.in);
      }
    });
  }

  const conv_sizes& s_;
  pixel_blocks blocks_;
  index_t columns_;
  ::xla::detail::working_memory memory_;
  tap* taps_;
  index_t* offsets_;  // of their weights
  T* weights_;
};

}  // namespace xla::kernel::detail
