// SPDX-License-Identifier: Apache-2.0
#pragma once

// remainder() and fmod(), with operator%.

#include "xla/op/arithmetic.hpp"
#include "xla/op/rounding.hpp"

namespace xla::op {

/// The base of remainders: x - q y with an integer q, where -q is the slope along y.
struct division_rest : map {
  static constexpr void gradient(auto& g) {
    if (g.needs(0)) g.to(0, g.grad());
    if (g.needs(1)) g.to(1, -(g.grad() * xla::round((g.in(0) - g.out()) / g.in(1))));
  }
};

struct remainder : division_rest {
  static constexpr auto name = "remainder";
  static constexpr auto kernel(auto a, auto b) {
    const auto rest = a.fmod(b), zero = a.like(0);
    return ((rest < zero && b > zero) || (rest > zero && b < zero)).select(rest + b, rest);
  }
};

struct fmod : division_rest {
  static constexpr auto name = "fmod";
  static constexpr auto kernel(auto a, auto b) { return a.fmod(b); }
};

}  // namespace xla::op

XLA_OP(xla::op::remainder, numbers);
XLA_OP(xla::op::fmod, numbers);

namespace xla {

/// The remainder with the divisor's sign: Python's %. Integers divided by zero give 0. Sizes that
/// do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> remainder(const Tensor<T, A>& x,
                                                      const Tensor<T, B>& divisor,
                                                      caller loc = here()) {
  return detail::map_binary<op::remainder, T>(x, divisor, loc);
}
XLA_DETAIL_WITH_NUMBERS(remainder, T, op::remainder);

/// The remainder of division towards zero, with x's sign: C's %. Integers divided by zero give 0.
/// Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> fmod(const Tensor<T, A>& x, const Tensor<T, B>& divisor,
                                                 caller loc = here()) {
  return detail::map_binary<op::fmod, T>(x, divisor, loc);
}
XLA_DETAIL_WITH_NUMBERS(fmod, T, op::fmod);

/// remainder(a, b).
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator%(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return remainder(a, b, detail::unknown_caller);
}
XLA_DETAIL_WITH_NUMBERS(operator%, T, op::remainder);
XLA_DETAIL_REFUSE_TYPES(operator%);

}  // namespace xla
