// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace xla::op

XLA_OP(xla::op::exp);
XLA_OP(xla::op::log);

namespace xla {

/// e to the power of each element.
template <class T, int R>
constexpr Tensor<T, R> exp(const Tensor<T, R>& x) {
  return detail::apply<op::exp, T, T, R>({}, x);
}

/// The natural logarithm of each element; of a negative number NaN.
template <class T, int R>
constexpr Tensor<T, R> log(const Tensor<T, R>& x) {
  return detail::apply<op::log, T, T, R>({}, x);
}

}  // namespace xla
