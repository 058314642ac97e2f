// SPDX-License-Identifier: Apache-2.0
#pragma once

// hardtanh(): an elementwise op, whose gradient reads its result.

#include "xla/op/logical.hpp"
#include "xla/op/where.hpp"

namespace xla::op {

/// Its gradient reads the result, which the next layer saves anyway. It uses two selects, because
/// saving masks costs more.
struct hardtanh : map {
  static constexpr auto name = "hardtanh";
  static constexpr auto kernel(auto x, auto low, auto high) { return x.max_nan(low).min_nan(high); }
  static constexpr void gradient(auto& g) {
    if (!g.needs(0)) return;
    const auto y = g.out();
    g.to(0, xla::where(y <= g.in(1), 0, xla::where(y >= g.in(2), 0, g.grad())));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::hardtanh, fractions);

namespace xla {

/// x clamped to the bounds; the gradient passes only between the bounds, and at NaN.
template <class T, int R>
constexpr Tensor<T, R> hardtanh(const Tensor<T, R>& x, detail::number_of<T> min_val = -1,
                                detail::number_of<T> max_val = 1) {
  static_assert(floating_type<T>, "xla::hardtanh: needs float or double; cast first");
  return detail::apply<op::hardtanh, T, T, R>(detail::plain, x, min_val.tensor(), max_val.tensor());
}

}  // namespace xla
