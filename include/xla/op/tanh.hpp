// SPDX-License-Identifier: Apache-2.0
#pragma once

// tanh(): an elementwise op.

#include "xla/op/arithmetic.hpp"

namespace xla::op {

struct tanh : map {
  static constexpr auto name = "tanh";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.tanh(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * (1 - g.out() * g.out())); }
};

}  // namespace xla::op

XLA_OP(xla::op::tanh, fractions);

namespace xla {

/// The hyperbolic tangent of each element. Within 6 ulp in float, 3 in double.
template <class T, int R>
constexpr Tensor<T, R> tanh(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::tanh: needs float or double; cast first");
  return detail::apply<op::tanh, T, T, R>(detail::plain, x);
}

}  // namespace xla
