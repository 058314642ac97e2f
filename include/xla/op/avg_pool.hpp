// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops behind avg_pool2d and its gradient. The public functions are below the ops and in
// derived/; pooling.hpp describes windows.

#include "xla/op/pooling.hpp"

namespace xla::op {

struct avg_pool_backward;

/// The mean of each window, or its sum.
struct avg_pool : pooling {
  static constexpr auto name = "avg_pool";
  static constexpr void gradient(auto& g) {
    g.to(0, detail::pooled<avg_pool_backward>(g.scope.attr, g.in(0).dims(), g.grad()));
  }
};

/// The transpose of avg_pool: each window's number, divided likewise, is added to all its elements.
struct avg_pool_backward : pooling {
  static constexpr auto name = "avg_pool_backward";
  static constexpr void gradient(auto& g) {
    g.to(0, detail::pooled<avg_pool>(g.scope.attr, g.in(0).dims(), g.grad()));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::avg_pool, fractions);
XLA_OP(xla::op::avg_pool_backward, fractions);

namespace xla {

/// How the windows of average pooling are placed, by PyTorch's names.
struct AvgPool1dOptions {
  PoolStride<std::int64_t> stride = none;  ///< none: the kernel's size
  std::int64_t padding = 0;                ///< on both sides, of zeros
  bool ceil_mode = false;                  ///< windows that reach beyond the image count, too
  bool count_include_pad = true;           ///< the mean is over the padding, too
};
/// The same for images.
struct AvgPool2dOptions {
  PoolStride<HeightWidth> stride = none;
  HeightWidth padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::int64_t divisor_override =
      0;  ///< divides sums by this instead; 0: by the number of elements
};

namespace detail {
template <class T>
constexpr Tensor<T, 4> average_images(const Tensor<T, 4>& x, const pool_request& how,
                                      bool count_include_pad, std::int64_t divisor,
                                      const call_site& site) {
  op::pooling::attributes a = how.attributes();
  a.count_include_pad = count_include_pad && divisor == 0;
  a.sums = divisor != 0;
  const Tensor<T, 4> y = pool_images<op::avg_pool>(x, how, a, site);
  if constexpr (floating_type<T>)  // the others have been refused
    if (divisor != 0) return y / static_cast<T>(divisor);
  return y;
}
}  // namespace detail

/// The mean of each window over images (batch, channels, height, width), or without the batch:
/// avg_pool2d(x, 2, {.ceil_mode = true}). Sizes are those of max_pool2d; where they are below 1, or
/// the padding more than half of the kernel, it is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> avg_pool2d(const Tensor<T, R>& x, HeightWidth kernel_size,
                                  const AvgPool2dOptions& options = {}, caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::avg_pool2d: needs (batch, channels, height, width), or that without a batch");
  static_assert(floating_type<T>, "xla::avg_pool2d: needs float or double; cast first");
  const detail::pool_request how{kernel_size, options.stride.of(kernel_size), options.padding, 1,
                                 options.ceil_mode};
  return detail::from_images<2, R>(
      detail::average_images(detail::as_images<2>(x), how, options.count_include_pad,
                             options.divisor_override, {"avg_pool2d", loc}));
}

/// Average pooling of signals (batch, channels, length), or without the batch.
template <class T, int R>
constexpr Tensor<T, R> avg_pool1d(const Tensor<T, R>& x, std::int64_t kernel_size,
                                  const AvgPool1dOptions& options = {}, caller loc = here()) {
  static_assert(R == 2 || R == 3,
                "xla::avg_pool1d: needs (batch, channels, length), or that without a batch");
  static_assert(floating_type<T>, "xla::avg_pool1d: needs float or double; cast first");
  const auto how = detail::pool_request::along(kernel_size, options.stride.of(kernel_size),
                                               options.padding, 1, options.ceil_mode);
  return detail::from_images<1, R>(detail::average_images(
      detail::as_images<1>(x), how, options.count_include_pad, 0, {"avg_pool1d", loc}));
}

/// Average pooling of images (batch, channels, height, width), with or without the batch, over
/// windows that divide the image evenly into a given number: adaptive_avg_pool2d(x, 1) is the mean
/// of each channel. Windows and errors are those of adaptive_max_pool2d.
template <class T, int R>
constexpr Tensor<T, R> adaptive_avg_pool2d(const Tensor<T, R>& x, const ImageSize& output_size,
                                           caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::adaptive_avg_pool2d: needs (batch, channels, height, width), or that without "
                "a batch");
  static_assert(floating_type<T>, "xla::adaptive_avg_pool2d: needs float or double; cast first");
  return detail::from_images<2, R>(detail::share_images<op::avg_pool>(
      detail::as_images<2>(x), output_size, {"adaptive_avg_pool2d", loc}));
}

/// Average pooling of signals (batch, channels, length), or without the batch, over windows that
/// divide them evenly into a given number.
template <class T, int R>
constexpr Tensor<T, R> adaptive_avg_pool1d(const Tensor<T, R>& x, detail::bound output_size,
                                           caller loc = here()) {
  static_assert(R == 2 || R == 3,
                "xla::adaptive_avg_pool1d: needs (batch, channels, length), or that without a "
                "batch");
  static_assert(floating_type<T>, "xla::adaptive_avg_pool1d: needs float or double; cast first");
  return detail::from_images<1, R>(detail::share_images<op::avg_pool>(
      detail::as_images<1>(x), {1, output_size}, {"adaptive_avg_pool1d", loc}));
}

}  // namespace xla
