// SPDX-License-Identifier: Apache-2.0
#pragma once

// Input gradients by col2im: one product gives all taps of all channels at a pixel of the result,
// and each pixel of the image is the sum of the taps that reach it. A product of patches takes more
// where images have few channels, which leave most of a vector empty. It also does where the image
// is larger than the result: most taps at a pixel are then outside of it. direct.hpp chooses it.

#include <algorithm>
#include <cstdint>

#include "xla/kernel/convolution/sizes.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/gemm/product.hpp"
#include "xla/kernel/gemm/right_operand.hpp"
#include "xla/kernel/memory/transposed_copy.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel::detail {

/// The columns of the product, and where they are added. A plane has all channels of its pixels, or
/// there is one for each channel, which is transposed in the end: then the weights are read in
/// place.
template <class T>
class col2im {
 public:
  explicit col2im(const conv_sizes& s) : s_(s) {
    const double one = cost(1, s.in), all = cost(s.in, 1);
    planes_ = all < one ? s.in : 1;
    cost_ = std::min(all, one);
  }

  /// Whether it is clearly cheaper than products of patches.
  bool pays() const {
    if (s_.groups != 1 || s_.dilation[1] != 1 || !is_vector<T> || results_ == 0) return false;
    const index_t taps = s_.batch * s_.height * s_.width * s_.taps();
    return cost_ * static_cast<double>(s_.stride[0] * s_.stride[1]) <
           0.8 * static_cast<double>(taps * vectors(s_.in) * s_.out);
  }

  /// With weights that are contiguous; multiply() is gemm() or a function like it.
  template <class F>
  void write(const T* dy, const T* w, T* dx, F multiply) const {
    constexpr index_t most = (index_t{1} << 19) / element_size<T>;
    const index_t image = s_.height * s_.width * s_.in;
    const index_t images = std::clamp<index_t>(most / (results_ * step_), 1, s_.batch);
    const index_t pixels = std::clamp<index_t>(most / step_, 1, results_);
    const index_t size = images * pixels * step_;
    const index_t more = planes_ > 1 ? images * image : s_.in > 1 ? s_.out * n_ : 0;
    ::xla::detail::working_memory memory;
    T* const columns =
        static_cast<T*>(memory.take(static_cast<std::size_t>(size + more) * sizeof(T)));
    T* const spare = columns + size;
    if (s_.in > 1 && planes_ == 1) {
      transpose_matrices(w, s_.out, s_.in, s_.taps(), spare);
      w = spare;
    }
    for (index_t i = 0; i < s_.batch; i += images) {
      const index_t count = std::min(images, s_.batch - i);
      T* const to = planes_ > 1 ? spare : dx + i * image;
      std::fill_n(to, count * image, T{0});
      for (index_t p = 0; p < results_; p += pixels) {
        const index_t some = std::min(pixels, results_ - p);
        multiply(count * some, n_, s_.out, {dy + (i * results_ + p) * s_.out, s_.out, 1},
                 {w, n_, 1}, columns, step_, nullptr);
        add(columns, count, {p, p + some}, to);
      }
      if (planes_ > 1)
        transpose_matrices(spare, count, s_.in, s_.height * s_.width, dx + i * image);
    }
  }

 private:
  static index_t vectors(index_t n) { return (n + lanes<T> - 1) / lanes<T>; }

  /// In multiply-adds of vectors. The sum of a vector takes as long as some of them, a transposed
  /// element as long as a part of one. On a Zen 4 on 2026-11-29, 64 taps on lines, 32 -> 64
  /// channels with 71 -> 8 pixels took a tenth of the time of products of patches. 16 -> 16
  /// channels with 127 -> 64 pixels took half of it.
  double cost(index_t planes, index_t pixel) const {
    constexpr double sum = 6, transposed = 0.5;
    const index_t sums = planes * s_.kernel[0] * vectors(s_.kernel[1] * pixel);
    const index_t copied = planes > 1  ? s_.batch * s_.height * s_.width * s_.in
                           : pixel > 1 ? s_.out * n_
                                       : 0;
    return static_cast<double>(s_.batch * results_) *
               (static_cast<double>(vectors(n_) * s_.out) + sum * static_cast<double>(sums)) +
           transposed * static_cast<double>(copied);
  }

  /// Adds the columns of these pixels of the result of some images. Ranges of planes, or of rows if
  /// there is one plane, are independent.
  void add(const T* columns, index_t images, range pixels, T* to) const {
    const index_t unit = planes_ > 1 ? planes_ : s_.height;
    for_ranges(images * unit, pixels.size() * n_ / unit, [&](index_t first, index_t last) {
      for (index_t i = first / unit; i * unit < last; ++i) {
        const range part{std::max<index_t>(first - i * unit, 0), std::min(last - i * unit, unit)},
            all{0, planes_ > 1 ? s_.height : 1};
        add_part(columns + i * pixels.size() * step_, pixels, planes_ > 1 ? part : all,
                 planes_ > 1 ? all : part, to + i * s_.height * s_.width * s_.in);
      }
    });
  }

  void add_part(const T* from, range pixels, range planes, range rows, T* to) const {
    const index_t pixel = s_.in / planes_, length = s_.kernel[1] * pixel;
    const index_t lowest = rows.begin + s_.padding[0] - (s_.kernel[0] - 1) * s_.dilation[0];
    const index_t line = (std::max<index_t>(lowest, 0) + s_.stride[0] - 1) / s_.stride[0];
    const index_t lines = (rows.end - 1 + s_.padding[0]) / s_.stride[0] + 1;
    const index_t begin = std::max(pixels.begin, line * s_.out_width);
    const index_t end = std::min(pixels.end, lines * s_.out_width);
    from += (begin - pixels.begin) * step_;
    for (index_t p = begin; p < end; ++p, from += step_) {
      const index_t y = p / s_.out_width * s_.stride[0] - s_.padding[0];
      const index_t x = p % s_.out_width * s_.stride[1] - s_.padding[1];
      const index_t left = std::max<index_t>(-x, 0) * pixel;
      const index_t wide = std::min(s_.kernel[1], s_.width - x) * pixel - left;
      for (index_t c = planes.begin; c < planes.end; ++c)
        for (index_t k = 0; k < s_.kernel[0]; ++k) {
          const index_t row = y + k * s_.dilation[0];
          if (row >= rows.begin && row < rows.end)
            add_piece(from + (c * s_.kernel[0] + k) * length + left, wide,
                      to + ((c * s_.height + row) * s_.width + x) * pixel + left);
        }
    }
  }

  static void add_piece(const T* from, index_t n, T* to) {
    constexpr index_t width = lanes<T>;
    index_t i = 0;
    for (; i + width <= n; i += width)
      simd::pstoreu(to + i,
                    simd::padd(simd::ploadu<packet<T>>(to + i), simd::ploadu<packet<T>>(from + i)));
    if (i < n)
      store_part<T>(to + i, simd::padd(load_part<T>(to + i, n - i), load_part<T>(from + i, n - i)),
                    n - i);
  }

  const conv_sizes& s_;
  index_t results_ = s_.out_height * s_.out_width;  // of an image
  index_t n_ = s_.taps() * s_.in, step_ = round_up(n_, lanes<T>), planes_;
  double cost_;
};

template <class T>
bool col2im_pays(const conv_sizes& s) {
  return col2im<T>(s).pays();
}

}  // namespace xla::kernel::detail
