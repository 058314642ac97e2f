// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace xla::op

XLA_OP(xla::op::sin, fractions);
XLA_OP(xla::op::cos, fractions);

namespace xla {

/// The sine of each element in radians; of an infinity NaN. Within 3 ulp.
template <class T, int R>
constexpr Tensor<T, R> sin(const Tensor<T, R>& x) {
  static_assert(fraction<T>, "xla::sin: needs float or double; cast first");
  return detail::apply<op::sin, T, T, R>(detail::plain, x);
}
/// The cosine of each element in radians; of an infinity NaN. Within 3 ulp.
template <class T, int R>
constexpr Tensor<T, R> cos(const Tensor<T, R>& x) {
  static_assert(fraction<T>, "xla::cos: needs float or double; cast first");
  return detail::apply<op::cos, T, T, R>(detail::plain, x);
}
/// The tangent of each element in radians, as sin over cos.
template <class T, int R>
constexpr Tensor<T, R> tan(const Tensor<T, R>& x) {
  return sin(x) / cos(x);
}

}  // namespace xla
