// SPDX-License-Identifier: Apache-2.0
#pragma once

// sin(), cos(), tan() and atan2(): elementwise ops.

#include "xla/op/arithmetic.hpp"

namespace xla {
template <class T, int R>
constexpr Tensor<T, R> sin(const Tensor<T, R>& x);
template <class T, int R>
constexpr Tensor<T, R> cos(const Tensor<T, R>& x);
}  // namespace xla

namespace xla::op {

struct sin : map {
  static constexpr auto name = "sin";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.sin(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * xla::cos(g.in(0))); }
};

struct cos : map {
  static constexpr auto name = "cos";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.cos(); }
  static constexpr void gradient(auto& g) { g.to(0, -(g.grad() * xla::sin(g.in(0)))); }
};

struct atan2 : map {
  static constexpr auto name = "atan2";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a, auto b) { return a.atan2(b); }
  static constexpr void gradient(auto& g) {
    const auto y = g.in(0), x = g.in(1);
    const auto scale = g.grad() / (x * x + y * y);
    if (g.needs(0)) g.to(0, scale * x);
    if (g.needs(1)) g.to(1, -(scale * y));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::sin, fractions);
XLA_OP(xla::op::cos, fractions);
XLA_OP(xla::op::atan2, fractions);

namespace xla {

/// The sine of each element in radians; of an infinity NaN. Within 3 ulp.
template <class T, int R>
constexpr Tensor<T, R> sin(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::sin: needs float or double; cast first");
  return detail::apply<op::sin, T, T, R>(detail::plain, x);
}
/// The cosine of each element in radians; of an infinity NaN. Within 3 ulp.
template <class T, int R>
constexpr Tensor<T, R> cos(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::cos: needs float or double; cast first");
  return detail::apply<op::cos, T, T, R>(detail::plain, x);
}
/// The tangent of each element in radians, as sin over cos.
template <class T, int R>
constexpr Tensor<T, R> tan(const Tensor<T, R>& x) {
  return sin(x) / cos(x);
}
/// The angle of the point (x, y) in radians, from -pi to pi, element by element, broadcast; signs
/// of zeros and infinities as C's. Within 1 ulp. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> atan2(const Tensor<T, A>& y, const Tensor<T, B>& x,
                                                  caller loc = here()) {
  static_assert(floating_type<T>, "xla::atan2: needs float or double; cast first");
  return detail::map_binary<op::atan2, T>(y, x, loc);
}

}  // namespace xla
