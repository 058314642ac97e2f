// SPDX-License-Identifier: Apache-2.0
#pragma once

// diff(), gradient() and trapezoid(): differences and sums along an axis.

#include <array>

#include "xla/op/concat.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/slice.hpp"

namespace xla {

/// The difference of neighbours along an axis, n times.
template <class T, int R>
constexpr Tensor<T, R> diff(const Tensor<T, R>& x, int n = 1, int axis = -1, caller loc = here()) {
  static_assert(R >= 1, "xla::diff: needs at least one axis");
  Tensor<T, R> y = x;
  for (int i = 0; i < n; ++i) {
    const Size less = y.size(axis) - 1;
    y = narrow(y, axis, 1, less, loc) - narrow(y, axis, 0, less, loc);
  }
  return y;
}

namespace detail {
/// The sums of all neighbours along the last axis.
template <class T, int R>
constexpr Tensor<T, R> neighbours(const Tensor<T, R>& y, caller loc) {
  const Size less = y.size(-1) - 1;
  return narrow(y, -1, 1, less, loc) + narrow(y, -1, 0, less, loc);
}
}  // namespace detail

/// The integral along the last axis by the trapezoidal rule, for values at distance dx.
template <class T, int R>
constexpr Tensor<T, R - 1> trapezoid(const Tensor<T, R>& y, double dx = 1, caller loc = here()) {
  static_assert(R >= 1 && floating_type<T>, "xla::trapezoid: needs an axis of float or double");
  return sum(detail::neighbours(y, loc), {-1}) * (dx / 2);
}
/// The same at positions x, which broadcast.
template <class T, int R, int A>
constexpr Tensor<T, R - 1> trapezoid(const Tensor<T, R>& y, const Tensor<T, A>& x,
                                     caller loc = here()) {
  static_assert(A <= R, "xla::trapezoid: x has no more axes than y");
  return sum(detail::neighbours(y, loc) * diff(x, 1, -1, loc), {-1}) / 2;
}

/// The cumulative integral along the last axis.
template <class T, int R>
constexpr Tensor<T, R> cumulative_trapezoid(const Tensor<T, R>& y, double dx = 1,
                                            caller loc = here()) {
  static_assert(R >= 1 && floating_type<T>,
                "xla::cumulative_trapezoid: needs an axis of float or double");
  return cumsum(detail::neighbours(y, loc), -1, loc) * (dx / 2);
}
template <class T, int R, int A>
constexpr Tensor<T, R> cumulative_trapezoid(const Tensor<T, R>& y, const Tensor<T, A>& x,
                                            caller loc = here()) {
  static_assert(A >= 1 && A <= R, "xla::cumulative_trapezoid: x has no more axes than y");
  return cumsum(detail::neighbours(y, loc) * diff(x, 1, -1, loc), -1, loc) / 2;
}

/// The slope along an axis for values at distance `spacing`: half the difference of both
/// neighbours, at the ends the difference of the last two. Fewer than two values are a shape_error.
template <class T, int R>
constexpr Tensor<T, R> gradient(const Tensor<T, R>& x, int axis, double spacing = 1,
                                caller loc = here()) {
  static_assert(R >= 1 && floating_type<T>, "xla::gradient: needs an axis of float or double");
  const auto steps = diff(x, 1, axis, loc);
  const Size inner = x.size(axis) - 2;
  const auto both = narrow(x, axis, 2, inner, loc) - narrow(x, axis, 0, inner, loc);
  const std::array all{narrow(steps, axis, 0, 1, loc), Tensor<T, R>(both * 0.5),
                       narrow(steps, axis, inner, 1, loc)};
  return cat(all, axis, loc) * (1 / spacing);
}

}  // namespace xla
