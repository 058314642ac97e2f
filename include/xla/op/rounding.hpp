// SPDX-License-Identifier: Apache-2.0
#pragma once

// floor(), ceil(), round() and trunc(): elementwise ops, whose gradient is 0.

#include "xla/op/sign.hpp"

namespace xla::op {

struct floor : stepwise {
  static constexpr auto name = "floor";
  static constexpr auto kernel(auto a) { return a.floor(); }
};

struct ceil : stepwise {
  static constexpr auto name = "ceil";
  static constexpr auto kernel(auto a) { return a.ceil(); }
};

struct round : stepwise {
  static constexpr auto name = "round";
  static constexpr auto kernel(auto a) { return a.round(); }
};

struct trunc : stepwise {
  static constexpr auto name = "trunc";
  static constexpr auto kernel(auto a) { return a.trunc(); }
};

}  // namespace xla::op

XLA_OP(xla::op::floor, fractions);
XLA_OP(xla::op::ceil, fractions);
XLA_OP(xla::op::round, fractions);
XLA_OP(xla::op::trunc, fractions);

namespace xla {
namespace detail {
/// Integers stay as they are.
template <class Op, class T, int R>
constexpr Tensor<T, R> to_integer(const Tensor<T, R>& x) {
  if constexpr (std::is_integral_v<T>) return x;
  else return apply<Op, T, T, R>(plain, x);
}
}  // namespace detail

/// The largest integer not above each element. The gradient of all four functions is 0.
template <class T, int R>
constexpr Tensor<T, R> floor(const Tensor<T, R>& x) {
  return detail::to_integer<op::floor>(x);
}
/// The smallest integer not below each element.
template <class T, int R>
constexpr Tensor<T, R> ceil(const Tensor<T, R>& x) {
  return detail::to_integer<op::ceil>(x);
}
/// The nearest integer; halves are rounded to even.
template <class T, int R>
constexpr Tensor<T, R> round(const Tensor<T, R>& x) {
  return detail::to_integer<op::round>(x);
}
/// Each element truncated to an integer.
template <class T, int R>
constexpr Tensor<T, R> trunc(const Tensor<T, R>& x) {
  return detail::to_integer<op::trunc>(x);
}

}  // namespace xla
