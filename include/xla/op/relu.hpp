// SPDX-License-Identifier: Apache-2.0
#pragma once

// relu(): an elementwise op.

#include "xla/op/where.hpp"

namespace xla::op {

struct relu : map {
  static constexpr auto name = "relu";
  static constexpr auto kernel(auto a) { return a.max(a.like(0)); }
  static constexpr void gradient(auto& g) { g.to(0, xla::where(g.out() <= 0, 0, g.grad())); }
};

}  // namespace xla::op

XLA_OP(xla::op::relu, numbers);

namespace xla {

/// max(x, 0) of each element; NaN stays NaN. The gradient is 0 at 0; at NaN it passes.
template <class T, int R>
constexpr Tensor<T, R> relu(const Tensor<T, R>& x) {
  return detail::apply<op::relu, T, T, R>(detail::plain, x);
}

}  // namespace xla
