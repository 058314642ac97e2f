// SPDX-License-Identifier: Apache-2.0
#pragma once

// conv3d() and its transpose, by convolutions of images.

#include "xla/op/derived/convolution.hpp"
#include "xla/op/derived/volumes.hpp"
#include "xla/op/index_select.hpp"

namespace xla {

/// How a convolution goes over volumes, by PyTorch's names and with its defaults.
struct Conv3dOptions {
  DepthHeightWidth stride = 1;    ///< from one position of the kernel to the next
  DepthHeightWidth padding = 0;   ///< zeros before and after each axis
  DepthHeightWidth dilation = 1;  ///< from one element of the kernel to the next
  std::int64_t groups = 1;        ///< of channels, each with outputs of its own
};
/// The same for a transposed convolution.
struct ConvTranspose3dOptions {
  DepthHeightWidth stride = 1;
  DepthHeightWidth padding = 0;         ///< cut off before and after each axis
  DepthHeightWidth output_padding = 0;  ///< more at the end of each axis
  std::int64_t groups = 1;
  DepthHeightWidth dilation = 1;
};

namespace detail {

/// The depths under each of the kernel's planes at each of these positions: (positions kernel).
template <class = void>  // without kernels this header compiles, too
constexpr Tensor<std::int64_t, 1> depths_of(Size positions, Size kernel, std::int64_t stride,
                                            std::int64_t dilation) {
  const auto begin = unsqueeze(arange(positions) * stride, 1);
  return reshape(begin + arange(kernel) * dilation, {-1});
}

constexpr void check_volumes(const handle& x, const shape& weight, extent taken,
                             const size_scope& scope) {
  if (extent channels = x.dims()[1]; !scope.equal(channels, taken))
    scope.fail(text("a weight of shape ") << weight << " takes " << scope.find(taken)
                                          << " channels, and the input " << x.dims() << " has "
                                          << scope.find(x.dims()[1]));
}

/// Convolves images of the channels of all planes under the kernel by conv2d.
template <class T>
constexpr Tensor<T, 5> convolve_volumes(const Tensor<T, 5>& x, const Tensor<T, 5>& weight,
                                        const Tensor<T, 1>* bias, const Conv3dOptions& o,
                                        caller loc) {
  const size_scope scope{x.table() ? x.table() : weight.table(), {"conv3d", loc}};
  check_volumes(x, weight.dims(), scope.multiply(weight.dims()[1], o.groups), scope);
  const auto padded = pad(x, {{0, 0}, {0, 0}, {o.padding.depth, o.padding.depth}, {0, 0}, {0, 0}},
                          0);
  const Size n = x.size(0), c = x.size(1), k = weight.size(2), h = x.size(3), w = x.size(4);
  const Size reach = (k - 1) * o.dilation.depth + 1;
  if (!scope.at_least(padded.dims()[2], reach.extent()))
    scope.fail(text("a kernel of depth ") << reach.extent() << " is larger than the padded input "
                                          << padded.dims());
  const Size d = (padded.size(2) - reach) / o.stride.depth + 1;
  const auto planes =
      index_select(padded, 2, depths_of(d, k, o.stride.depth, o.dilation.depth), loc);
  const auto images = reshape(permute(reshape(planes, {n, c, d, k, h, w}), {0, 2, 1, 3, 4, 5}),
                              {n * d, c * k, h, w});
  const auto flat = reshape(weight, {weight.size(0), weight.size(1) * k, weight.size(3),
                                     weight.size(4)});
  const Conv2dOptions how{o.stride.plane(), o.padding.plane(), o.dilation.plane(), o.groups};
  const Tensor<T, 4> y = convolve<2, T>(images, flat, bias, how, loc);
  return permute(reshape(y, {n, d, y.size(1), y.size(2), y.size(3)}), {0, 2, 1, 3, 4});
}

/// conv_transpose2d computes all planes of the kernel, which are added at their positions.
template <class T>
constexpr Tensor<T, 5> convolve_volumes_transposed(const Tensor<T, 5>& x,
                                                   const Tensor<T, 5>& weight,
                                                   const Tensor<T, 1>* bias,
                                                   const ConvTranspose3dOptions& o, caller loc) {
  const size_scope scope{x.table() ? x.table() : weight.table(), {"conv_transpose3d", loc}};
  check_volumes(x, weight.dims(), weight.dims()[0], scope);
  const Size n = x.size(0), c = x.size(1), d = x.size(2), k = weight.size(2);
  const auto images =
      reshape(permute(x, {0, 2, 1, 3, 4}), {n * d, c, x.size(3), x.size(4)});
  const auto flat = reshape(weight, {c, weight.size(1) * k, weight.size(3), weight.size(4)});
  const ConvTranspose2dOptions how{o.stride.plane(), o.padding.plane(), o.output_padding.plane(),
                                   o.groups, o.dilation.plane()};
  const Tensor<T, 4> y = convolve_transposed<2, T>(images, flat, nullptr, how, loc);
  const Size out = weight.size(1) * o.groups, h = y.size(2), w = y.size(3);
  const auto planes = reshape(permute(reshape(y, {n, d, out, k, h, w}), {0, 2, 1, 3, 4, 5}),
                              {n, out, d * k, h, w});
  const Size all = (d - 1) * o.stride.depth + (k - 1) * o.dilation.depth + 1 +
                   o.output_padding.depth;
  const auto index = depths_of(d, k, o.stride.depth, o.dilation.depth);
  const auto sums = index_add(zeros<T>({n, out, all, h, w}), 2, index, planes, loc);
  return plus_bias<T, 5>(narrow(sums, 2, o.padding.depth, all - 2 * o.padding.depth, loc), bias,
                         loc);
}

}  // namespace detail

/// conv2d of volumes x (batch, in, depth, height, width) with a weight (out, in / groups, kernel
/// depth, height, width), plus a bias (out) if there is one. Sizes that do not match are a
/// shape_error; for heights and widths it is conv2d's.
template <class T>
constexpr Tensor<T, 5> conv3d(const Tensor<T, 5>& x, const Tensor<T, 5>& weight,
                              const Conv3dOptions& options = {}, caller loc = here()) {
  return detail::convolve_volumes<T>(x, weight, nullptr, options, loc);
}
template <class T>
constexpr Tensor<T, 5> conv3d(const Tensor<T, 5>& x, const Tensor<T, 5>& weight,
                              const Tensor<T, 1>& bias, const Conv3dOptions& options = {},
                              caller loc = here()) {
  return detail::convolve_volumes<T>(x, weight, &bias, options, loc);
}

/// conv_transpose2d of volumes, with a weight (in, out / groups, kernel depth, height, width).
template <class T>
constexpr Tensor<T, 5> conv_transpose3d(const Tensor<T, 5>& x, const Tensor<T, 5>& weight,
                                        const ConvTranspose3dOptions& options = {},
                                        caller loc = here()) {
  return detail::convolve_volumes_transposed<T>(x, weight, nullptr, options, loc);
}
template <class T>
constexpr Tensor<T, 5> conv_transpose3d(const Tensor<T, 5>& x, const Tensor<T, 5>& weight,
                                        const Tensor<T, 1>& bias,
                                        const ConvTranspose3dOptions& options = {},
                                        caller loc = here()) {
  return detail::convolve_volumes_transposed<T>(x, weight, &bias, options, loc);
}

}  // namespace xla
