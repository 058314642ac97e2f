// SPDX-License-Identifier: Apache-2.0
#pragma once

// sqrt() and rsqrt(): elementwise ops.

#include "xla/op/arithmetic.hpp"

namespace xla::op {

struct sqrt : map {
  static constexpr auto name = "sqrt";
  static constexpr auto kernel(auto a) { return a.sqrt(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * 0.5 / g.out()); }
};

struct rsqrt : map {
  static constexpr auto name = "rsqrt";
  static constexpr auto kernel(auto a) { return a.rsqrt(); }
  static constexpr void gradient(auto& g) {
    g.to(0, g.grad() * -0.5 * g.out() * g.out() * g.out());
  }
};

}  // namespace xla::op

XLA_OP(xla::op::sqrt, fractions);
XLA_OP(xla::op::rsqrt, fractions);

namespace xla {

/// The square root of each element.
template <class T, int R>
constexpr Tensor<T, R> sqrt(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::sqrt: needs float or double; cast first");
  return detail::apply<op::sqrt, T, T, R>(detail::plain, x);
}

/// One over the square root of each element.
template <class T, int R>
constexpr Tensor<T, R> rsqrt(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::rsqrt: needs float or double; cast first");
  return detail::apply<op::rsqrt, T, T, R>(detail::plain, x);
}

}  // namespace xla
