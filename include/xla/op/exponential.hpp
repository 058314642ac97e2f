// SPDX-License-Identifier: Apache-2.0
#pragma once

// exp(), log(), expm1() and log1p(): elementwise ops. Powers of 2 and 10 are in special.hpp.

#include "xla/op/arithmetic.hpp"

namespace xla::op {

struct exp : map {
  static constexpr auto name = "exp";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.exp(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * g.out()); }
};

struct log : map {
  static constexpr auto name = "log";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.log(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() / g.in(0)); }
};

struct expm1 : map {
  static constexpr auto name = "expm1";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.expm1(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * (g.out() + 1)); }
};

struct log1p : map {
  static constexpr auto name = "log1p";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.log1p(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() / (g.in(0) + 1)); }
};

}  // namespace xla::op

XLA_OP(xla::op::exp, fractions);
XLA_OP(xla::op::log, fractions);
XLA_OP(xla::op::expm1, fractions);
XLA_OP(xla::op::log1p, fractions);

namespace xla {

/// e to the power of each element; 0 where that is below the normal numbers. Within 1 ulp.
template <class T, int R>
constexpr Tensor<T, R> exp(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::exp: needs float or double; cast first");
  return detail::apply<op::exp, T, T, R>(detail::plain, x);
}

/// The natural logarithm of each element; NaN for a negative number. Within 2 ulp.
template <class T, int R>
constexpr Tensor<T, R> log(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::log: needs float or double; cast first");
  return detail::apply<op::log, T, T, R>(detail::plain, x);
}

/// exp(x) - 1 without its cancellation near 0. Within 2 ulp.
template <class T, int R>
constexpr Tensor<T, R> expm1(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::expm1: needs float or double; cast first");
  return detail::apply<op::expm1, T, T, R>(detail::plain, x);
}

/// log(1 + x) without its cancellation near 0. Within 2 ulp.
template <class T, int R>
constexpr Tensor<T, R> log1p(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::log1p: needs float or double; cast first");
  return detail::apply<op::log1p, T, T, R>(detail::plain, x);
}

}  // namespace xla
