// SPDX-License-Identifier: Apache-2.0
#pragma once

// pow() and its operators for tensors and numbers.

#include "xla/op/exponential.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/root.hpp"
#include "xla/op/where.hpp"

namespace xla {
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> pow(const Tensor<T, A>& x, const Tensor<T, B>& exponent,
                                                caller loc = here());
}  // namespace xla

namespace xla::op {

struct pow : map {
  static constexpr auto name = "pow";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a, auto b) { return a.pow(b); }
  // At the limit 0 the plain formulas, of x^0 and 0^y, give NaN.
  static constexpr void gradient(auto& g) {
    const auto x = g.in(0), y = g.in(1);
    if (g.needs(0)) g.to(0, xla::where(y == 0, 0, g.grad() * (y * xla::pow(x, y - 1))));
    if (g.needs(1)) g.to(1, xla::where(x == 0 && y >= 0, 0, g.grad() * g.out() * xla::log(x)));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::pow, numbers);

namespace xla {
namespace detail {
/// Any type for integers, so that a negative exponent is noticed even if x is unsigned.
template <class T>
using exponent_type = std::conditional_t<floating_type<T>, T, std::int64_t>;
}  // namespace detail

/// x to the power of another tensor, element by element, broadcast. Within 1 ulp. Integers wrap
/// around; to a negative power they are 0, except 1 and -1. Sizes that do not broadcast are a
/// shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> pow(const Tensor<T, A>& x, const Tensor<T, B>& exponent,
                                                caller loc) {
  return detail::map_binary<op::pow, T>(x, exponent, loc);
}
/// x to the power of a number. As in PyTorch, some powers are computed without pow: 1 is x, 2 and 3
/// are products, ±0.5 are roots, and -1 and -2 are quotients. Integers to a negative power are
/// refused.
template <class T, int R>
constexpr Tensor<T, R> pow(const Tensor<T, R>& x,
                           detail::number_of<detail::exponent_type<T>> exponent) {
  if constexpr (!floating_type<T>) {
    if (exponent.fits() && exponent.outside(0, std::numeric_limits<double>::infinity()))
      refuse_now(x,
                 "pow: integers to a negative power are fractions; write "
                 "xla::pow(xla::cast<float>(x), exponent)");
    detail::require_fit<T>(x.table(), exponent.template fits<T>());
  }
  if (exponent.is(1)) return x;
  if (exponent.is(2)) return x * x;
  if (exponent.is(3)) return x * x * x;
  if constexpr (floating_type<T>) {
    if (exponent.is(0.5)) return sqrt(x);
    if (exponent.is(-0.5)) return rsqrt(x);
    if (exponent.is(-1)) return 1 / x;
    if (exponent.is(-2)) return 1 / (x * x);
    return detail::map_number<op::pow, T>(x, exponent);
  } else {
    return detail::map_binary<op::pow, T>(x, cast<T>(exponent.tensor()));
  }
}
/// A number to the power of each element.
template <class T, int R>
constexpr Tensor<T, R> pow(detail::number_of<T> base, const Tensor<T, R>& exponent) {
  return detail::number_map<op::pow, T>(base, exponent);
}

}  // namespace xla
