// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pools of volumes (batch, channels, depth, height, width), or without the batch: a pool of images
// over heights and widths, and one over depths.

#include "xla/op/derived/lp_pool.hpp"
#include "xla/op/max_pool.hpp"

namespace xla {

/// A number for each axis of a volume, {depth, height, width}, or one for all.
struct DepthHeightWidth {
  std::int64_t depth = 0, height = 0, width = 0;

  constexpr DepthHeightWidth(std::integral auto all) : DepthHeightWidth(all, all, all) {}
  constexpr DepthHeightWidth(std::integral auto d, std::integral auto h, std::integral auto w)
      : depth(static_cast<std::int64_t>(d)),
        height(static_cast<std::int64_t>(h)),
        width(static_cast<std::int64_t>(w)) {}

  constexpr HeightWidth plane() const { return {height, width}; }
  friend constexpr bool operator==(const DepthHeightWidth&, const DepthHeightWidth&) = default;
};
/// The output size for volumes, {depth, height, width}, or one number for all; xla::none keeps the
/// volume's own.
struct VolumeSize {
  detail::bound depth, height, width;

  template <std::convertible_to<detail::bound> N>
  constexpr VolumeSize(const N& all) : depth(all), height(all), width(all) {}
  template <std::convertible_to<detail::bound> D, std::convertible_to<detail::bound> H,
            std::convertible_to<detail::bound> W>
  constexpr VolumeSize(const D& d, const H& h, const W& w) : depth(d), height(h), width(w) {}
};

using MaxPool3dOptions = MaxPoolOptions<DepthHeightWidth>;
using LpPool3dOptions = LpPoolOptions<DepthHeightWidth>;
/// AvgPool2dOptions, of volumes.
struct AvgPool3dOptions {
  PoolStride<DepthHeightWidth> stride = none;
  DepthHeightWidth padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::int64_t divisor_override = 0;
};

namespace detail {

/// For volumes with or without a batch: planes() on all images of heights and widths, then depths()
/// on images (depth, height times width).
template <class T, int R, class Planes, class Depths>
constexpr Tensor<T, R> pool_volumes(const Tensor<T, R>& x, Planes planes, Depths depths) {
  const Size n = R == 5 ? x.size(0) : Size(1), c = x.size(-4), d = x.size(-3);
  const Tensor<T, 4> images = reshape(x, {n, c * d, x.size(-2), x.size(-1)});
  const Tensor<T, 4> flat = planes(images);
  const Size h = flat.size(2), w = flat.size(3);
  const Tensor<T, 4> deep = depths(Tensor<T, 4>(reshape(flat, {n, c, d, h * w})));
  if constexpr (R == 5) return reshape(deep, {n, c, deep.size(2), h, w});
  else return reshape(deep, {c, deep.size(2), h, w});
}

constexpr pool_request over_planes(const DepthHeightWidth& kernel, const DepthHeightWidth& stride,
                                   const DepthHeightWidth& padding,
                                   const DepthHeightWidth& dilation, bool ceil_mode) {
  return {kernel.plane(), stride.plane(), padding.plane(), dilation.plane(), ceil_mode};
}
constexpr pool_request over_depths(const DepthHeightWidth& kernel, const DepthHeightWidth& stride,
                                   const DepthHeightWidth& padding,
                                   const DepthHeightWidth& dilation, bool ceil_mode) {
  pool_request how{{kernel.depth, 1}, {stride.depth, 1}, {padding.depth, 0}, {dilation.depth, 1},
                   ceil_mode};
  how.depths = true;
  return how;
}

template <class Op, class T, int R>
constexpr Tensor<T, R> share_volumes(const Tensor<T, R>& x, const VolumeSize& size,
                                     const call_site& site) {
  return pool_volumes(
      x,
      [&](const Tensor<T, 4>& y) { return share_images<Op>(y, {size.height, size.width}, site); },
      [&](const Tensor<T, 4>& y) { return share_images<Op>(y, {size.depth, none}, site); });
}

}  // namespace detail

/// The largest element of each window over volumes; see max_pool2d.
template <class T, int R>
constexpr Tensor<T, R> max_pool3d(const Tensor<T, R>& x, DepthHeightWidth kernel_size,
                                  const MaxPool3dOptions& o = {}, caller loc = here()) {
  static_assert(R == 4 || R == 5, "xla::max_pool3d: needs (N, C, D, H, W), or that without N");
  static_assert(!std::is_same_v<T, bool>, "xla::max_pool3d: needs numbers, not bool; cast first");
  const auto stride = o.stride.of(kernel_size);
  const auto largest = [&](const Tensor<T, 4>& y, const detail::pool_request& how) {
    return detail::pool_images<op::max_pool>(y, how, how.attributes(), {"max_pool3d", loc});
  };
  return detail::pool_volumes(
      x,
      [&](const auto& y) {
        return largest(y, detail::over_planes(kernel_size, stride, o.padding, o.dilation,
                                              o.ceil_mode));
      },
      [&](const auto& y) {
        return largest(y, detail::over_depths(kernel_size, stride, o.padding, o.dilation,
                                              o.ceil_mode));
      });
}

/// The mean of each window over volumes; see avg_pool2d.
template <class T, int R>
constexpr Tensor<T, R> avg_pool3d(const Tensor<T, R>& x, DepthHeightWidth kernel_size,
                                  const AvgPool3dOptions& o = {}, caller loc = here()) {
  static_assert(R == 4 || R == 5, "xla::avg_pool3d: needs (N, C, D, H, W), or that without N");
  static_assert(floating_type<T>, "xla::avg_pool3d: needs float or double; cast first");
  const auto stride = o.stride.of(kernel_size);
  const auto average = [&](const Tensor<T, 4>& y, const detail::pool_request& how,
                           std::int64_t divisor) {
    return detail::average_images(y, how, o.count_include_pad, divisor, {"avg_pool3d", loc});
  };
  return detail::pool_volumes(
      x,
      [&](const auto& y) {
        return average(y, detail::over_planes(kernel_size, stride, o.padding, 1, o.ceil_mode),
                       o.divisor_override != 0);
      },
      [&](const auto& y) {
        return average(y, detail::over_depths(kernel_size, stride, o.padding, 1, o.ceil_mode),
                       o.divisor_override);
      });
}

/// lp_pool2d of volumes.
template <class T, int R>
constexpr Tensor<T, R> lp_pool3d(const Tensor<T, R>& x, double p, DepthHeightWidth kernel_size,
                                 const LpPool3dOptions& how = {}, caller loc = here()) {
  const auto means = avg_pool3d(pow(x, p), kernel_size,
                                {.stride = how.stride, .ceil_mode = how.ceil_mode}, loc);
  const DepthHeightWidth& k = kernel_size;
  return detail::root_of_sums(means, p, k.depth * k.height * k.width);
}

/// The means of windows that divide volumes evenly; see adaptive_avg_pool2d.
template <class T, int R>
constexpr Tensor<T, R> adaptive_avg_pool3d(const Tensor<T, R>& x, const VolumeSize& output_size,
                                           caller loc = here()) {
  static_assert(R == 4 || R == 5, "xla::adaptive_avg_pool3d: needs (N, C, D, H, W), or without N");
  static_assert(floating_type<T>, "xla::adaptive_avg_pool3d: needs float or double; cast first");
  return detail::share_volumes<op::avg_pool>(x, output_size, {"adaptive_avg_pool3d", loc});
}
/// The largest elements of windows that divide volumes evenly; see adaptive_max_pool2d.
template <class T, int R>
constexpr Tensor<T, R> adaptive_max_pool3d(const Tensor<T, R>& x, const VolumeSize& output_size,
                                           caller loc = here()) {
  static_assert(R == 4 || R == 5, "xla::adaptive_max_pool3d: needs (N, C, D, H, W), or without N");
  return detail::share_volumes<op::max_pool>(x, output_size, {"adaptive_max_pool3d", loc});
}

}  // namespace xla
