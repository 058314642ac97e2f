// SPDX-License-Identifier: Apache-2.0
#pragma once

// sign(), and the base of piecewise constant ops.

#include "xla/op/create.hpp"

namespace xla::op {

/// The base of piecewise constant ops, whose gradient is 0 everywhere.
struct stepwise : map {
  static constexpr void gradient(auto& g) { g.to(0, zeros_like(g.in(0))); }
};

struct sign : stepwise {
  static constexpr auto name = "sign";
  static constexpr auto kernel(auto a) {
    const auto zero = a.like(0), one = a.like(1);
    return (a > zero).select(one, zero) - (a < zero).select(one, zero);
  }
};

}  // namespace xla::op

XLA_OP(xla::op::sign, numbers);

namespace xla {

/// 1, 0 or -1 if an element is above, at or below 0; 0 for NaN, as in PyTorch. The gradient is 0.
template <class T, int R>
constexpr Tensor<T, R> sign(const Tensor<T, R>& x) {
  return detail::apply<op::sign, T, T, R>(detail::plain, x);
}

}  // namespace xla
