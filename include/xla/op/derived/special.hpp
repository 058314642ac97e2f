// SPDX-License-Identifier: Apache-2.0
#pragma once

// exp2(), ldexp(), heaviside(), copysign() and other functions of one line, composed of other ops.

#include <concepts>
#include <numbers>

#include "xla/op/abs.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/rounding.hpp"
#include "xla/op/special.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// 2 to the power of each element.
template <class T, int R>
constexpr Tensor<T, R> exp2(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::exp2: needs float or double; cast first");
  return pow(2, x);
}
/// x 2^n, element by element, broadcast. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> ldexp(const Tensor<T, A>& x, const Tensor<T, B>& n,
                                                  caller loc = here()) {
  return detail::map_binary<op::mul, T>(x, exp2(n), loc);
}
template <class T, int A, std::integral N, int B>
constexpr detail::broadcast_tensor<T, A, B> ldexp(const Tensor<T, A>& x, const Tensor<N, B>& n,
                                                  caller loc = here()) {
  return ldexp(x, cast<T>(n), loc);
}
/// log2(2^a + 2^b), element by element, broadcast; nothing overflows on the way.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> logaddexp2(const Tensor<T, A>& a,
                                                       const Tensor<T, B>& b,
                                                       caller loc = here()) {
  using std::numbers::ln2;
  return logaddexp(a * ln2, b * ln2, loc) * (1 / ln2);
}
/// The part after the point, with x's sign: x - trunc(x).
template <class T, int R>
constexpr Tensor<T, R> frac(const Tensor<T, R>& x) {
  return x - trunc(x);
}
/// 0 below zero, 1 above, and `at_zero` there, broadcast. Sizes that do not broadcast are a
/// shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> heaviside(const Tensor<T, A>& x,
                                                      const Tensor<T, B>& at_zero,
                                                      caller loc = here()) {
  detail::check_broadcast({"heaviside", loc}, x, at_zero);
  return where(x == 0, at_zero, cast<T>(x > 0));
}
/// Degrees in radians.
template <class T, int R>
constexpr Tensor<T, R> deg2rad(const Tensor<T, R>& x) {
  return x * (std::numbers::pi / 180);
}
/// Radians in degrees.
template <class T, int R>
constexpr Tensor<T, R> rad2deg(const Tensor<T, R>& x) {
  return x * (180 / std::numbers::pi);
}

/// Whether an element is below 0 or -0. That of NaN is false.
template <class T, int R>
constexpr Tensor<bool, R> signbit(const Tensor<T, R>& x) {
  static_assert(!std::is_same_v<T, bool>, "xla::signbit: needs numbers, not bool; cast first");
  if constexpr (floating_type<T>) return x < 0 || (x == 0 && 1 / x < 0);
  else return x < 0;
}

/// The magnitude of x with the sign of y, broadcast. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> copysign(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                     caller loc = here()) {
  static_assert(floating_type<T>, "xla::copysign: needs float or double; cast first");
  detail::check_broadcast({"copysign", loc}, x, y);
  const auto magnitude = abs(x);
  return where(signbit(y), -magnitude, magnitude);
}

/// The angle of each number in the complex plane: pi below 0, 0 elsewhere; NaN of NaN.
template <class T, int R>
constexpr Tensor<T, R> angle(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::angle: needs float or double; cast first");
  return where(x < 0, static_cast<T>(std::numbers::pi), where(isnan(x), x, T{}));
}

}  // namespace xla
