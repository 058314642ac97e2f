// SPDX-License-Identifier: Apache-2.0
#pragma once

// abs(): an elementwise op.

#include "xla/op/where.hpp"

namespace xla::op {

struct abs : map {
  static constexpr auto name = "abs";
  static constexpr auto kernel(auto a) { return a.abs(); }
  static constexpr void gradient(auto& g) {
    g.to(0, xla::where(g.in(0) < 0, -g.grad(), xla::where(g.in(0) > 0, g.grad(), 0)));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::abs, numbers);

namespace xla {

/// The magnitude of each element; the gradient at 0 is 0.
template <class T, int R>
constexpr Tensor<T, R> abs(const Tensor<T, R>& x) {
  return detail::apply<op::abs, T, T, R>(detail::plain, x);
}

}  // namespace xla
