// SPDX-License-Identifier: Apache-2.0
#pragma once

// grid_sample() and affine_grid(), composed of other ops.

#include <array>

#include "xla/op/abs.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/derived/interpolate.hpp"
#include "xla/op/derived/linalg.hpp"
#include "xla/op/derived/range.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/remainder.hpp"
#include "xla/op/rounding.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// The values outside of an image for grid_sample.
enum class GridPadding {
  zeros,
  border,      ///< the nearest pixel of the image
  reflection,  ///< the mirror image
};
/// How grid_sample reads, by PyTorch's names.
struct GridSampleOptions {
  Interpolation mode = Interpolation::bilinear;  ///< or nearest
  GridPadding padding_mode = GridPadding::zeros;
  bool align_corners = false;  ///< -1 and 1 are the centres of the outer pixels, not their edges
};

namespace detail {

/// x reflected at low and low + span until it lies between them.
template <class T, int R>
constexpr Tensor<T, R> mirrored(const Tensor<T, R>& x, double low, Size span) {
  const auto away = abs(x - low);
  const auto turns = floor(away / span), rest = fmod(away, span);
  const auto inside = where(fmod(turns, 2) == 0, rest, span - rest) + low;
  return where(isfinite(turns), inside, T{});  // not of a span of 0
}

/// Converts coordinates from -1 to 1 to pixels of an axis of n.
template <class T, int R>
constexpr Tensor<T, R> in_pixels(const Tensor<T, R>& position, Size n,
                                 const GridSampleOptions& how) {
  Tensor<T, R> x;
  if (how.align_corners) x = (position + 1) * (n - 1) * 0.5;
  else x = ((position + 1) * n - 1) * 0.5;
  if (how.padding_mode == GridPadding::zeros) return x;
  if (how.padding_mode == GridPadding::reflection) {
    if (how.align_corners) x = mirrored(x, 0, n - 1);
    else x = mirrored(x, -0.5, n);
  }
  return minimum(maximum(x, T{}), n - 1);
}

/// The pixels (n, channels, positions) of images (n, channels, height width) at integer positions,
/// 0 outside.
template <class T>
constexpr Tensor<T, 3> pixels_at(const Tensor<T, 3>& images, const Tensor<T, 2>& y,
                                 const Tensor<T, 2>& x, Size height, Size width, caller loc) {
  const auto inside = y >= 0 && x >= 0 && y <= height - 1 && x <= width - 1;  // of NaN false
  const auto row = cast<std::int64_t>(where(inside, y, T{}));
  const auto column = cast<std::int64_t>(where(inside, x, T{}));
  const auto number = unsqueeze(row * width + column, 1);
  const Size sizes[] = {images.size(0), images.size(1), number.size(2)};
  return where(unsqueeze(inside, 1), gather(images, 2, expand(number, sizes), loc), T{});
}

}  // namespace detail

/// Images (N, C, H, W) read at the positions of a grid (N, height, width, 2), each {x, y} from -1
/// to 1: (N, C, height, width). By bilinear interpolation, or the nearest pixel. Other sizes are a
/// shape_error. Jaderberg et al. (2015).
template <class T>
constexpr Tensor<T, 4> grid_sample(const Tensor<T, 4>& x, const Tensor<T, 4>& grid,
                                   const GridSampleOptions& how = {}, caller loc = here()) {
  static_assert(std::is_floating_point_v<T>, "xla::grid_sample: needs float or double; cast first");
  const detail::size_scope scope{x.table() ? x.table() : grid.table(), {"grid_sample", loc}};
  const bool nearest = how.mode == Interpolation::nearest;
  detail::extent batch = grid.dims()[0], two = grid.dims()[3];
  if (!scope.equal(batch, x.dims()[0]) || !scope.equal(two, 2))
    scope.fail(detail::text("a grid of shape ") << grid.dims() << " for images " << x.dims()
                                                << ": it is (N, height, width, 2)");
  if (!nearest && how.mode != Interpolation::bilinear)
    scope.fail("mode is bilinear or nearest");
  const Size n = x.size(0), h = x.size(2), w = x.size(3);
  const Size rows = grid.size(1), columns = grid.size(2);
  const Tensor<T, 3> images = reshape(x, {n, x.size(1), h * w});
  const auto positions = reshape(grid, {n, rows * columns, 2});
  const auto right = detail::in_pixels(select(positions, 2, 0), w, how);
  const auto down = detail::in_pixels(select(positions, 2, 1), h, how);
  const auto at = [&](const auto& row, const auto& column) {
    return detail::pixels_at<T>(images, row, column, h, w, loc);
  };
  Tensor<T, 3> y;
  if (nearest) {
    y = at(round(down), round(right));
  } else {
    const auto top = floor(down), left = floor(right);
    const auto lower = unsqueeze(down - top, 1), later = unsqueeze(right - left, 1);
    const auto upper_row = at(top, left) * (1 - later) + at(top, left + 1) * later;
    const auto lower_row = at(top + 1, left) * (1 - later) + at(top + 1, left + 1) * later;
    y = upper_row * (1 - lower) + lower_row * lower;
  }
  return reshape(y, {n, x.size(1), rows, columns});
}

/// The grid (N, height, width, 2) of affine maps theta (N, 2, 3), for grid_sample: theta times {x,
/// y, 1} for x and y from -1 to 1. Other sizes of theta are a shape_error.
template <class T>
constexpr Tensor<T, 4> affine_grid(const Tensor<T, 3>& theta, Size height, Size width,
                                   bool align_corners = false, caller loc = here()) {
  static_assert(std::is_floating_point_v<T>, "xla::affine_grid: needs float or double");
  const auto along = [&](Size count) {
    // Counted from the centre, in half pixels.
    const auto position = detail::with_table(arange<T>(count), theta.table()) * 2 - (count - 1);
    if (!align_corners) return position / count;
    return where(position == 0, T{}, position / (count - 1));
  };
  const Size all[] = {height, width};
  const auto xs = reshape(expand(unsqueeze(along(width), 0), all), {-1});
  const auto ys = reshape(expand(unsqueeze(along(height), 1), all), {-1});
  const auto base = stack(std::array{xs, ys, ones_like(xs)}, 1);
  const auto positions = matmul(base, transpose(theta, 1, 2), loc);
  return reshape(positions, {theta.size(0), height, width, 2});
}

}  // namespace xla
