// SPDX-License-Identifier: Apache-2.0
#pragma once

// gelu(), silu(), elu() and other activations, composed of other ops. Their layers are in
// nn/activation.hpp.

#include <numbers>

#include "xla/op/cast.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/erf.hpp"
#include "xla/op/hardtanh.hpp"
#include "xla/op/sigmoid.hpp"

namespace xla {

/// x times the standard normal distribution's probability of a number below it, element by element.
/// Hendrycks and Gimpel (2016). Within 6 ulp until ndtr is below the normal numbers.
template <class T, int R>
constexpr Tensor<T, R> gelu(const Tensor<T, R>& x) {
  const auto w = detail::widened(x);
  return detail::narrowed<T>(w * ndtr(w));
}

/// Says that gelu is approximated by tanh: gelu(x, xla::approximate_tanh).
struct approximate_tanh_t {};
inline constexpr approximate_tanh_t approximate_tanh{};

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as x sigmoid(2 …), which avoids cancellation.
/// Within 8 ulp above -1; below, the rounding of the cube shows: 50 at -5.
template <class T, int R>
constexpr Tensor<T, R> gelu(const Tensor<T, R>& x, approximate_tanh_t) {
  // Beyond ±32 the sigmoid is 0 or 1; without the bound x^2 would overflow in the gradient.
  const auto w = detail::widened(x);
  const auto z = clamp(w, -32, 32);
  constexpr double c = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return detail::narrowed<T>(w * sigmoid(z * (z * z * (c * 0.044715) + c)));
}

/// x sigmoid(x) of each element. Within 4 ulp.
template <class T, int R>
constexpr Tensor<T, R> silu(const Tensor<T, R>& x) {
  const auto w = detail::widened(x);
  return detail::narrowed<T>(w * sigmoid(w));
}

/// x where it is above 0, elsewhere x times the slope.
template <class T, int R>
constexpr Tensor<T, R> leaky_relu(const Tensor<T, R>& x,
                                  detail::number_of<T> negative_slope = 0.01) {
  return where(x > 0, x, x * negative_slope);
}

/// x where it is above 0, elsewhere alpha (exp(x) - 1). Clevert et al. (2015).
template <class T, int R>
constexpr Tensor<T, R> elu(const Tensor<T, R>& x, detail::number_of<T> alpha = 1) {
  // The bound keeps exp of a large x, which is not selected, out of the gradient.
  return where(x <= 0, expm1(clamp_max(x, 0)) * alpha, x);
}

/// hardtanh between 0 and 6.
template <class T, int R>
constexpr Tensor<T, R> relu6(const Tensor<T, R>& x) {
  return hardtanh(x, 0, 6);
}

/// relu6(x + 3) / 6: 0 below -3, 1 above 3, a line between.
template <class T, int R>
constexpr Tensor<T, R> hardsigmoid(const Tensor<T, R>& x) {
  return relu6(x + 3) / 6;
}

/// x hardsigmoid(x) of each element. Howard et al. (2019).
template <class T, int R>
constexpr Tensor<T, R> hardswish(const Tensor<T, R>& x) {
  return x * relu6(x + 3) / 6;
}

}  // namespace xla
