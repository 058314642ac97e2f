// SPDX-License-Identifier: Apache-2.0
#pragma once

// Windows over images: the elements of each window. It multiplies nothing: pooling and unfold use
// it.

#include <algorithm>
#include <cstdint>

#include "xla/kernel/fused/loops.hpp"
#include "xla/op/pooling.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel {

/// A window along one axis: elements first, first + dilation, … of the image.
struct window {
  std::int64_t first, count;
  std::int64_t size;  ///< the count by which an average divides
  std::int64_t
      run;  ///< the number of windows from this one on that are equal, each `shift` further
};

/// The windows of one axis.
struct window_axis {
  std::int64_t image, windows;
  std::int64_t kernel, stride, padding, dilation;
  bool adaptive, count_padding;

  window_axis(const ::xla::detail::shape& images, const ::xla::detail::shape& pools,
              const op::pooling::attributes& a, int i)
      : image(images[i + (a.channels_last ? 1 : 2)]),
        windows(pools[i + (a.channels_last ? 1 : 2)]),
        kernel(a.kernel[i]),
        stride(a.stride[i]),
        padding(a.padding[i]),
        dilation(a.adaptive ? 1 : std::int64_t{a.dilation[i]}),
        adaptive(a.adaptive),
        count_padding(a.count_include_pad) {}

  window at(std::int64_t i) const {
    if (adaptive) {
      const std::int64_t first = i * image / windows;
      const std::int64_t count = ((i + 1) * image + windows - 1) / windows - first;
      return {first, count, count, 1};
    }
    const std::int64_t begin = i * stride - padding;
    const std::int64_t end = std::min(begin + (kernel - 1) * dilation + 1, image);
    const std::int64_t first =
        begin < 0 ? begin + (dilation - 1 - begin) / dilation * dilation : begin;
    const std::int64_t count = first < end ? (end - first + dilation - 1) / dilation : 0;
    const std::int64_t padded = std::min(begin + kernel, image + padding) - begin;
    return {first, count, count_padding ? padded : count, 1};
  }
};

/// All windows over a batch of images: `planes` of (height, width, inner) in memory order; inner
/// are the channels if they are the last axis.
class window_grid {
 public:
  std::int64_t planes, inner;
  window_axis rows, columns;
  std::int64_t shift;  ///< between successive windows, if they are equal

  window_grid(const ::xla::detail::shape& images, const ::xla::detail::shape& pools,
              const op::pooling::attributes& a)
      : planes(a.channels_last ? images[0] : images[0] * images[1]),
        inner(a.channels_last ? images[3] : 1),
        rows(images, pools, a, 0),
        columns(images, pools, a, 1),
        shift(a.adaptive ? columns.image / std::max<std::int64_t>(columns.windows, 1)
                         : columns.stride) {
    if (windows() == 0) return;
    auto* const all = static_cast<window*>(
        memory_.take(static_cast<std::size_t>(columns.windows) * sizeof(window)));
    for (std::int64_t i = columns.windows - 1; i >= 0; --i) {
      window w = columns.at(i);
      const bool shifted = i + 1 < columns.windows && all[i + 1].count == w.count &&
                           all[i + 1].first == w.first + shift && all[i + 1].size == w.size;
      if (shifted) w.run = all[i + 1].run + 1;
      all[i] = w;
    }
    in_row_ = all;
  }

  const window& column(std::int64_t i) const { return in_row_[i]; }
  std::int64_t pixels() const { return rows.image * columns.image; }
  std::int64_t windows() const { return rows.windows * columns.windows; }
  /// An upper bound on the elements of a window.
  std::int64_t largest() const {
    const auto most = [](const window_axis& a) {
      return a.adaptive ? a.image / a.windows + 2 : std::min(a.kernel, a.image);
    };
    return most(rows) * most(columns);
  }

 private:
  ::xla::detail::working_memory memory_;
  const window* in_row_ = nullptr;
};

/// The elements of one window: from `first` on, with these steps between rows and columns.
struct window_elements {
  std::int64_t first, rows, row_step, columns, column_step;

  window_elements(const window_grid& g, const window& r, const window& c)
      : first((r.first * g.columns.image + c.first) * g.inner),
        rows(r.count),
        row_step(g.rows.dilation * g.columns.image * g.inner),
        columns(c.count),
        column_step(g.columns.dilation * g.inner) {}

  /// Calls f(position of the element) in the order of rows.
  template <class F>
  [[gnu::always_inline]] void each(F f) const {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) f(first + r * row_step + c * column_step);
  }
};

}  // namespace xla::kernel
