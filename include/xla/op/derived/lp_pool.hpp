// SPDX-License-Identifier: Apache-2.0
#pragma once

// lp_pool1d() and 2d: pools of norms.

#include "xla/op/avg_pool.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// How the windows of a pool of norms are placed, by PyTorch's names.
template <class N>
struct LpPoolOptions {
  PoolStride<N> stride = none;  ///< none: the kernel's size
  bool ceil_mode = false;       ///< windows that reach beyond the image count, too
};
using LpPool1dOptions = LpPoolOptions<std::int64_t>;
using LpPool2dOptions = LpPoolOptions<HeightWidth>;

namespace detail {
/// The roots of means of x^p over windows of this many elements.
template <class T, int R>
constexpr Tensor<T, R> root_of_sums(const Tensor<T, R>& means, double p, std::int64_t count) {
  const auto zero = means == 0;  // whose gradient is 0
  return where(zero, T{}, pow(where(zero, T{1}, means) * static_cast<double>(count), 1 / p));
}
}  // namespace detail

/// (the sum of x^p over each window)^(1 / p) of images (batch, channels, height, width), or without
/// the batch; windows and errors are avg_pool2d's. Odd p takes negative elements as they are.
template <class T, int R>
constexpr Tensor<T, R> lp_pool2d(const Tensor<T, R>& x, double p, HeightWidth kernel_size,
                                 const LpPool2dOptions& how = {}, caller loc = here()) {
  const auto means = avg_pool2d(pow(x, p), kernel_size,
                                {.stride = how.stride, .ceil_mode = how.ceil_mode}, loc);
  return detail::root_of_sums(means, p, kernel_size.height * kernel_size.width);
}
/// Power-average pooling of signals (batch, channels, length), or without the batch.
template <class T, int R>
constexpr Tensor<T, R> lp_pool1d(const Tensor<T, R>& x, double p, std::int64_t kernel_size,
                                 const LpPool1dOptions& how = {}, caller loc = here()) {
  const auto means = avg_pool1d(pow(x, p), kernel_size,
                                {.stride = how.stride, .ceil_mode = how.ceil_mode}, loc);
  return detail::root_of_sums(means, p, kernel_size);
}

}  // namespace xla
