// SPDX-License-Identifier: Apache-2.0
#pragma once

// maximum(), minimum() of two tensors, and max(), min() over axes.

#include "xla/op/where.hpp"

namespace xla::op {

// Not commutative to the bit: of +0 and -0 the first is taken.
struct maximum : map {
  static constexpr auto name = "maximum";
  static constexpr auto kernel(auto a, auto b) { return a.max_nan(b); }
  static constexpr void gradient(auto& g) {
    const auto half = g.grad() * 0.5;
    const auto tie = g.in(0) == g.in(1);
    if (g.needs(0)) g.to(0, xla::where(tie, half, xla::where(g.in(0) < g.in(1), 0, g.grad())));
    if (g.needs(1)) g.to(1, xla::where(tie, half, xla::where(g.in(1) < g.in(0), 0, g.grad())));
  }
};

struct minimum : map {
  static constexpr auto name = "minimum";
  static constexpr auto kernel(auto a, auto b) { return a.min_nan(b); }
  static constexpr void gradient(auto& g) {
    const auto half = g.grad() * 0.5;
    const auto tie = g.in(0) == g.in(1);
    if (g.needs(0)) g.to(0, xla::where(tie, half, xla::where(g.in(0) > g.in(1), 0, g.grad())));
    if (g.needs(1)) g.to(1, xla::where(tie, half, xla::where(g.in(1) > g.in(0), 0, g.grad())));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::maximum, numbers);
XLA_OP(xla::op::minimum, numbers);

namespace xla {

/// The larger of two, element by element; NaN if either is NaN. Ties share the gradient; if one is
/// NaN both have all of it. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> maximum(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                    caller loc = here()) {
  return detail::map_binary<op::maximum, T>(a, b, loc);
}
XLA_DETAIL_WITH_NUMBERS(maximum, T, op::maximum);
/// The smaller of two, element by element; NaN if either is NaN. Ties share the gradient; if one is
/// NaN both have all of it. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> minimum(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                    caller loc = here()) {
  return detail::map_binary<op::minimum, T>(a, b, loc);
}
XLA_DETAIL_WITH_NUMBERS(minimum, T, op::minimum);

/// Other names of maximum and minimum.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> max(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                caller loc = here()) {
  return maximum(a, b, loc);
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> min(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                caller loc = here()) {
  return minimum(a, b, loc);
}

}  // namespace xla
