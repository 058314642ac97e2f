// SPDX-License-Identifier: Apache-2.0
#pragma once

// max_pool1d() and 2d, adaptive ones, and the ops of their gradients. Averages are in avg_pool.hpp.

#include "xla/op/pooling.hpp"

namespace xla::op {

struct max_pool_scatter;
struct max_pool_gather;

/// The largest element of each window of x; a NaN is larger than every number.
struct max_pool : pooling {
  static constexpr auto name = "max_pool";
  static constexpr void gradient(auto& g) {
    g.to(0, detail::pooled<max_pool_scatter>(g.scope.attr, g.in(0).dims(), g.grad(), g.in(0)));
  }
};

/// In x's shape: each window's number is added at the window's largest element, of equal ones the
/// first, of NaNs the last; the others are 0. The second input is x.
struct max_pool_scatter : pooling {
  static constexpr auto name = "max_pool_scatter";
  static constexpr void gradient(auto& g) {
    if (g.needs(0))
      g.to(0, detail::pooled<max_pool_gather>(g.scope.attr, g.in(0).dims(), g.grad(), g.in(1)));
  }
};

/// The elements of the first input at the largest elements of the windows of x, the second.
struct max_pool_gather : pooling {
  static constexpr auto name = "max_pool_gather";
  static constexpr void gradient(auto& g) {
    if (g.needs(0))
      g.to(0, detail::pooled<max_pool_scatter>(g.scope.attr, g.in(0).dims(), g.grad(), g.in(1)));
  }
};

/// The position of the largest element of each window of x, of equal ones the first, of NaNs the
/// last: its number in the image, row by row; 0 for a window without elements.
struct max_pool_index : pooling {
  static constexpr auto name = "max_pool_index";
  static constexpr bool computes = false;
};

}  // namespace xla::op

XLA_OP(xla::op::max_pool, numbers);
XLA_OP(xla::op::max_pool_index, positions);
XLA_OP(xla::op::max_pool_scatter, fractions);
XLA_OP(xla::op::max_pool_gather, fractions);

namespace xla {

/// How the windows of max pooling are placed, by PyTorch's names.
template <class N>
struct MaxPoolOptions {
  PoolStride<N> stride = none;  ///< none: the kernel's size
  N padding = 0;                ///< on both sides, of elements that are never the largest
  N dilation = 1;
  bool ceil_mode = false;  ///< windows that reach beyond the image count, too
};
using MaxPool1dOptions = MaxPoolOptions<std::int64_t>;
using MaxPool2dOptions = MaxPoolOptions<HeightWidth>;

/// The largest element of each window over images (batch, channels, height, width), or without the
/// batch: max_pool2d(x, 3, {.stride = 2, .padding = 1}). NaN is larger than every number; of equal
/// ones the first has the gradient. Sizes are floor((n + 2 padding - dilation (kernel - 1) - 1) /
/// stride) + 1; if that is below 1, or the padding more than half of the kernel, it is a
/// shape_error.
template <class T, int R>
constexpr Tensor<T, R> max_pool2d(const Tensor<T, R>& x, HeightWidth kernel_size,
                                  const MaxPool2dOptions& options = {}, caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::max_pool2d: needs (batch, channels, height, width), or that without a batch");
  static_assert(!std::is_same_v<T, bool>, "xla::max_pool2d: needs numbers, not bool; cast first");
  const detail::pool_request how{kernel_size, options.stride.of(kernel_size), options.padding,
                                 options.dilation, options.ceil_mode};
  return detail::from_images<2, R>(detail::pool_images<op::max_pool>(
      detail::as_images<2>(x), how, how.attributes(), {"max_pool2d", loc}));
}

/// Max pooling of signals (batch, channels, length), or without the batch.
template <class T, int R>
constexpr Tensor<T, R> max_pool1d(const Tensor<T, R>& x, std::int64_t kernel_size,
                                  const MaxPool1dOptions& options = {}, caller loc = here()) {
  static_assert(R == 2 || R == 3,
                "xla::max_pool1d: needs (batch, channels, length), or that without a batch");
  static_assert(!std::is_same_v<T, bool>, "xla::max_pool1d: needs numbers, not bool; cast first");
  const auto how =
      detail::pool_request::along(kernel_size, options.stride.of(kernel_size), options.padding,
                                  options.dilation, options.ceil_mode);
  return detail::from_images<1, R>(detail::pool_images<op::max_pool>(
      detail::as_images<1>(x), how, how.attributes(), {"max_pool1d", loc}));
}

/// Max pooling of images (batch, channels, height, width), with or without the batch, over windows
/// that divide the image evenly into a given number: window i goes from floor(i n / size) to
/// ceil((i + 1) n / size). An empty image, or a size of 0, is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> adaptive_max_pool2d(const Tensor<T, R>& x, const ImageSize& output_size,
                                           caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::adaptive_max_pool2d: needs (batch, channels, height, width), or that without "
                "a batch");
  static_assert(!std::is_same_v<T, bool>,
                "xla::adaptive_max_pool2d: needs numbers, not bool; cast first");
  return detail::from_images<2, R>(detail::share_images<op::max_pool>(
      detail::as_images<2>(x), output_size, {"adaptive_max_pool2d", loc}));
}

/// Max pooling of signals (batch, channels, length), or without the batch, over windows that divide
/// them evenly into a given number.
template <class T, int R>
constexpr Tensor<T, R> adaptive_max_pool1d(const Tensor<T, R>& x, detail::bound output_size,
                                           caller loc = here()) {
  static_assert(R == 2 || R == 3,
                "xla::adaptive_max_pool1d: needs (batch, channels, length), or that without a "
                "batch");
  static_assert(!std::is_same_v<T, bool>,
                "xla::adaptive_max_pool1d: needs numbers, not bool; cast first");
  return detail::from_images<1, R>(detail::share_images<op::max_pool>(
      detail::as_images<1>(x), {1, output_size}, {"adaptive_max_pool1d", loc}));
}

}  // namespace xla
