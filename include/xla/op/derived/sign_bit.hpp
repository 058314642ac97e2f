// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numbers>

#include "xla/op/abs.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// Whether an element is below 0 or -0. That of NaN is false.
template <class T, int R>
constexpr Tensor<bool, R> signbit(const Tensor<T, R>& x) {
  static_assert(!std::is_same_v<T, bool>, "xla::signbit: needs numbers, not bool; cast first");
  if constexpr (fraction<T>) return x < 0 || (x == 0 && 1 / x < 0);
  else return x < 0;
}

/// The magnitude of x with the sign of y, broadcast. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> copysign(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                     caller who = here()) {
  static_assert(fraction<T>, "xla::copysign: needs float or double; cast first");
  detail::check_broadcast({"copysign", who}, x, y);
  const auto magnitude = abs(x);
  return where(signbit(y), -magnitude, magnitude);
}

/// The angle of each number in the complex plane: pi below 0, 0 elsewhere; NaN of NaN.
template <class T, int R>
constexpr Tensor<T, R> angle(const Tensor<T, R>& x) {
  static_assert(fraction<T>, "xla::angle: needs float or double; cast first");
  return where(x < 0, static_cast<T>(std::numbers::pi), where(isnan(x), x, T{}));
}

}  // namespace xla
