// SPDX-License-Identifier: Apache-2.0
#pragma once

// clamp(), clip() and their one-sided forms.

#include <limits>

#include "xla/op/logical.hpp"
#include "xla/op/where.hpp"

namespace xla::op {

struct clamp : map {
  static constexpr auto name = "clamp";
  static constexpr auto kernel(auto x, auto low, auto high) { return x.max_nan(low).min_nan(high); }
  static constexpr void gradient(auto& g) {
    const auto x = g.in(0), low = g.in(1), high = g.in(2);
    if (g.needs(0)) g.to(0, xla::where(x >= low, xla::where(x <= high, g.grad(), 0), 0));
    if (g.needs(1)) g.to(1, xla::where(x < low && low < high, g.grad(), 0));
    if (g.needs(2)) g.to(2, xla::where(x > high || high < low, g.grad(), 0));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::clamp, numbers);

namespace xla {

/// Each element clamped to [low, high]; high if the bounds cross, NaN if any of the three is. The
/// gradient passes within the bounds and on them. Bounds are tensors that broadcast, or numbers.
/// Sizes that do not broadcast are a shape_error.
template <class T, int A, int B, int C>
constexpr detail::broadcast_tensor<T, A, B, C> clamp(const Tensor<T, A>& x, const Tensor<T, B>& low,
                                                     const Tensor<T, C>& high,
                                                     caller loc = here()) {
  return detail::apply_at<op::clamp, T, T, detail::broadcast_rank(A, B, C)>(loc, detail::plain, x,
                                                                            low, high);
}
template <class T, int R>
constexpr Tensor<T, R> clamp(const Tensor<T, R>& x, detail::number_of<T> low,
                             detail::number_of<T> high) {
  detail::require_truth(x, low);
  detail::require_truth(x, high);
  return clamp(x, low.element(x.table()), high.element(x.table()));
}
/// Another name of clamp.
template <class T, int A, int B, int C>
constexpr detail::broadcast_tensor<T, A, B, C> clip(const Tensor<T, A>& x, const Tensor<T, B>& low,
                                                    const Tensor<T, C>& high, caller loc = here()) {
  return clamp(x, low, high, loc);
}
template <class T, int R>
constexpr Tensor<T, R> clip(const Tensor<T, R>& x, detail::number_of<T> low,
                            detail::number_of<T> high) {
  return clamp(x, low, high);
}

/// clamp with a lower bound alone.
template <class T, int R>
constexpr Tensor<T, R> clamp_min(const Tensor<T, R>& x, detail::number_of<T> low) {
  using limits = std::numeric_limits<T>;
  return clamp(x, low, limits::has_infinity ? limits::infinity() : limits::max());
}
/// clamp with an upper bound alone.
template <class T, int R>
constexpr Tensor<T, R> clamp_max(const Tensor<T, R>& x, detail::number_of<T> high) {
  using limits = std::numeric_limits<T>;
  return clamp(x, limits::has_infinity ? -limits::infinity() : limits::lowest(), high);
}

}  // namespace xla
