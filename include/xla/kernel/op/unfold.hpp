// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of unfold and fold: windows as rows, and their sums back.

#include <algorithm>

#include "xla/kernel/convolution/windows.hpp"
#include "xla/kernel/simd/lane.hpp"
#include "xla/op/unfold.hpp"

namespace xla::detail {

/// Images and the windows over them, in rows: the windows of one channel of an image at one
/// position of the kernel.
class unfold_rows {
 public:
  unfold_rows(const shape& images, const op::unfold::attributes& a)
      : channels_(images[a.channels_last ? 3 : 1]),
        height_(images[a.channels_last ? 1 : 2]),
        width_(images[a.channels_last ? 2 : 3]),
        pixel_stride_(a.channels_last ? channels_ : 1),
        a_(a) {
    for (int i = 0; i < 2; ++i) {
      const std::int64_t n = i == 0 ? height_ : width_;
      windows_[i] =
          (n + 2 * a.padding[i] - a.dilation[i] * (a.kernel[i] - 1) - 1) / a.stride[i] + 1;
    }
  }

  std::int64_t channels() const { return channels_; }
  std::int64_t taps() const { return a_.kernel[0] * a_.kernel[1]; }
  std::int64_t windows() const { return windows_[0] * windows_[1]; }
  /// The distance from one pixel to the next, in elements.
  std::int64_t pixel_stride() const { return pixel_stride_; }
  /// The begin of a channel's elements.
  std::int64_t channel(std::int64_t image, std::int64_t c) const {
    const std::int64_t all = image * channels_ * height_ * width_;
    return all + (pixel_stride_ == 1 ? c * height_ * width_ : c);
  }
  std::int64_t pixels() const { return height_ * width_; }

  /// Calls f(window, pixel, step from one pixel to the next, how many) for the rows of windows at a
  /// position of the kernel; rest(window, how many) for those outside of the image.
  template <class F, class Rest>
  void each(std::int64_t tap, F f, Rest rest) const {
    const std::int64_t y = tap / a_.kernel[1] * a_.dilation[0] - a_.padding[0],
                       x = tap % a_.kernel[1] * a_.dilation[1] - a_.padding[1];
    const std::int64_t step = a_.stride[1], all = windows_[1];
    const std::int64_t first = std::clamp<std::int64_t>(x < 0 ? (step - 1 - x) / step : 0, 0, all);
    const std::int64_t last =
        std::clamp<std::int64_t>(width_ > x ? (width_ - x + step - 1) / step : 0, first, all);
    for (std::int64_t r = 0; r < windows_[0]; ++r) {
      const std::int64_t row = r * a_.stride[0] + y, at = r * all;
      if (row < 0 || row >= height_) {
        rest(at, all);
        continue;
      }
      rest(at, first);
      f(at + first, row * width_ + first * step + x, step, last - first);
      rest(at + last, all - last);
    }
  }

 private:
  std::int64_t channels_, height_, width_, pixel_stride_;
  op::unfold::attributes a_;
  std::int64_t windows_[2];
};

template <class Out, class T>
struct kernel_of<op::unfold, Out, T> {
  static void run(const kernel_call& call) {
    const unfold_rows rows(call.in_shapes[0], call.attributes<op::unfold>());
    const T* const x = static_cast<const T*>(call.in[0]);
    T* const out = static_cast<T*>(call.out);
    const std::int64_t taps = rows.taps(), pixel_stride = rows.pixel_stride(),
                       windows = rows.windows();
    const std::int64_t columns = call.in_shapes[0][0] * rows.channels() * taps;
    kernel::for_ranges(columns, windows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t plane = i / taps;
        const T* const from = x + rows.channel(plane / rows.channels(), plane % rows.channels());
        T* const to = out + i * windows;
        rows.each(
            i % taps,
            [=](std::int64_t window, std::int64_t pixel, std::int64_t step, std::int64_t n) {
              if (step * pixel_stride == 1) return void(std::copy_n(from + pixel, n, to + window));
              for (std::int64_t k = 0; k < n; ++k)
                to[window + k] = from[(pixel + k * step) * pixel_stride];
            },
            [=](std::int64_t window, std::int64_t n) { std::fill_n(to + window, n, T{}); });
      }
    });
  }
};

/// The transpose of unfold: columns are added up to images, plane by plane.
template <class Out, class T>
struct kernel_of<op::fold, Out, T> {
  static void run(const kernel_call& call) {
    const unfold_rows rows(*call.out_shape, call.attributes<op::fold>());
    const T* const x = static_cast<const T*>(call.in[0]);
    T* const out = static_cast<T*>(call.out);
    const std::int64_t taps = rows.taps(), pixel_stride = rows.pixel_stride(),
                       windows = rows.windows();
    const std::int64_t planes = call.in_shapes[0][0] * rows.channels();
    kernel::for_ranges(
        planes, rows.pixels() + taps * windows, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t plane = begin; plane < end; ++plane) {
            T* const to = out + rows.channel(plane / rows.channels(), plane % rows.channels());
            for (std::int64_t p = 0; p < rows.pixels(); ++p) to[p * pixel_stride] = T{};
            for (std::int64_t tap = 0; tap < taps; ++tap) {
              const T* const from = x + (plane * taps + tap) * windows;
              rows.each(
                  tap,
                  [=](std::int64_t window, std::int64_t pixel, std::int64_t step, std::int64_t n) {
                    for (std::int64_t k = 0; k < n; ++k) {
                      T& sum = to[(pixel + k * step) * pixel_stride];
                      sum = kernel::add_wrapping(sum, from[window + k]);
                    }
                  },
                  [](std::int64_t, std::int64_t) {});
            }
          }
        });
  }
};

}  // namespace xla::detail
