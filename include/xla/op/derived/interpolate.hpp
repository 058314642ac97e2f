// SPDX-License-Identifier: Apache-2.0
#pragma once

// interpolate(): computes sizes and scales; the op is in op/resample.hpp.

#include "xla/op/avg_pool.hpp"
#include "xla/op/resample.hpp"

namespace xla {

/// How interpolate makes new elements, by PyTorch's names.
enum class Interpolation {
  nearest,
  nearest_exact,  ///< as Pillow and scikit-image have it; nearest rounds down, as OpenCV's does
  linear,         ///< of signals
  bilinear,       ///< of images
  bicubic,        ///< of images, by a cubic convolution with a = -3/4 (Keys 1981)
  area,           ///< means, as adaptive pools
};

/// The factors by which images grow, {height, width}, or one number for both.
struct ScaleFactor {
  double height = 0, width = 0;  ///< 0: given by the size

  constexpr ScaleFactor(none_t) {}
  constexpr ScaleFactor(double both) : ScaleFactor(both, both) {}
  constexpr ScaleFactor(double h, double w) : height(h), width(w) {}
};

/// The output size of interpolate; for signals the width counts.
struct InterpolateOptions {
  ImageSize size = none;            ///< either this
  ScaleFactor scale_factor = none;  ///< or this; sizes are rounded down
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;  ///< of linear, bilinear and bicubic: corners keep their values
};

namespace detail {

/// The scaled size of an axis of n elements; for a size known only in the call, if that is exact.
constexpr Size scaled_size(Size n, double scale, const size_scope& scope) {
  if (n.known()) return static_cast<std::int64_t>(static_cast<double>(n.extent()) * scale);
  double times = scale;
  std::int64_t parts = 1;
  while (parts < 1 << 20 && times < 0x1p40 &&
         times != static_cast<double>(static_cast<std::int64_t>(times))) {
    times *= 2;
    parts *= 2;
  }
  if (times < 0x1p40 && times == static_cast<double>(static_cast<std::int64_t>(times)))
    return n * static_cast<std::int64_t>(times) / parts;
  scope.fail(
      "a size that is known only at run time takes a scale_factor in halves, quarters, ...: give "
      "the size instead");
  return n;
}

/// The size that an axis of n elements gets.
constexpr Size interpolated_size(Size n, const bound& size, double scale, const size_scope& scope) {
  return scale > 0 ? scaled_size(n, scale, scope) : size.open ? n : size.at;
}

template <class T, int R>
constexpr Tensor<T, R> interpolate_axis(const Tensor<T, R>& x, int axis, const Size& to,
                                        double scale, const Size& sides,
                                        const InterpolateOptions& how, const call_site& site) {
  size_table* const table = x.table() ? x.table() : to.table();
  const size_scope scope{table, site};
  const Size n(x.dims()[axis], table);
  if (!scope.at_least(n.extent(), 1)) {
    scope.fail(text("images of shape ") << x.dims() << " are empty");
    return x;
  }
  if (to.known() ? to.extent() < 1 : !scope.at_least(to.extent(), 1)) {
    scope.fail(text("axis ") << axis << " of " << x.dims() << " becomes " << to.extent()
                             << "; it has to be at least 1");
    return x;
  }
  const bool exact = how.mode == Interpolation::nearest_exact;
  const bool cubic = how.mode == Interpolation::bicubic;
  const bool nearest = how.mode == Interpolation::nearest;
  // Of the same size too.
  const bool moves = scale > 0 && (exact || ((cubic || nearest) && scale != 1));
  if (scope.find(n.extent()) == scope.find(to.extent()) && !moves) return x;
  const auto way = exact     ? resampling::nearest_exact
                   : nearest ? resampling::nearest
                   : cubic   ? resampling::cubic
                             : resampling::linear;
  return resample_axis(x,
                       {.axis = axis,
                        .way = static_cast<int>(way),
                        .align_corners = how.align_corners,
                        .scale = how.align_corners ? 0 : scale,
                        .sides = {nearest && scale > 0 ? sides.extent() : 0}},
                       to, site);
}

}  // namespace detail

/// Images (batch, channels, height, width) resized, or signals (batch, channels, length):
/// interpolate(x, {.scale_factor = 2, .mode = xla::Interpolation::bilinear}). Elements are at the
/// centres of their squares, as in PyTorch, unless corners are aligned. Neither size nor
/// scale_factor or both, a mode of the other rank, or a size below 1, is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> interpolate(const Tensor<T, R>& x, const InterpolateOptions& options,
                                   caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::interpolate: needs (batch, channels, height, width) or (batch, channels, "
                "length)");
  static_assert(!std::is_same_v<T, bool>, "xla::interpolate: needs numbers, not bool; cast first");
  const detail::call_site site{"interpolate", loc};
  const detail::size_scope scope{x.table(), site};
  const auto& [size, scale, mode, align_corners] = options;
  const bool sized = !size.width.open || (R == 4 && !size.height.open),
             scaled = scale.width != 0 || (R == 4 && scale.height != 0);
  const bool lines = mode == Interpolation::linear || mode == Interpolation::bilinear ||
                     mode == Interpolation::bicubic;
  const char* wrong = nullptr;
  if (sized == scaled) wrong = "give either a size or a scale_factor";
  else if (scaled && !(scale.width > 0 && (R == 3 || scale.height > 0)))
    wrong = "a scale_factor has to be above 0";
  else if (lines && (mode == Interpolation::linear) != (R == 3))
    wrong = R == 3 ? "signals (batch, channels, length) are interpolated by mode linear"
                   : "images (batch, channels, height, width) are interpolated by mode bilinear or "
                     "bicubic";
  else if ((lines || mode == Interpolation::area) && !floating_type<T>)
    wrong = "linear, bilinear, bicubic and area need float or double; cast first";
  else if (align_corners && !lines)
    wrong = "align_corners is for the modes linear, bilinear and bicubic";
  if (wrong) {
    scope.fail(wrong);
    return x;
  }
  if constexpr (floating_type<T> && (R == 3 || R == 4))
    if (mode == Interpolation::area) {
      const auto to = [&](int axis, const detail::bound& wanted, double by) {
        return by > 0 ? detail::bound(detail::scaled_size(x.size(axis), by, scope)) : wanted;
      };
      if constexpr (R == 3) return adaptive_avg_pool1d(x, to(2, size.width, scale.width), loc);
      else
        return adaptive_avg_pool2d(
            x, {to(2, size.height, scale.height), to(3, size.width, scale.width)}, loc);
    }
  const Size wide = detail::interpolated_size(x.size(R - 1), size.width, scale.width, scope);
  if constexpr (R == 3)
    return detail::interpolate_axis(x, 2, wide, scale.width, Size(0), options, site);
  else {
    const Size high = detail::interpolated_size(x.size(2), size.height, scale.height, scope);
    const Size sides = wide + high;
    return detail::interpolate_axis(
        detail::interpolate_axis(x, 3, wide, scale.width, sides, options, site), 2, high,
        scale.height, sides, options, site);
  }
}

}  // namespace xla
