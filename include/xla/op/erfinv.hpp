// SPDX-License-Identifier: Apache-2.0
#pragma once

// erfinv(): an elementwise op.

#include <limits>
#include <numbers>

#include "xla/op/erf.hpp"

namespace xla::op {

/// A rational initial guess, then two Newton steps: on erf in the middle, and on erfc of the
/// magnitude in the tails, whose argument 1 - |x| is exact there.
struct erfinv : map {
  static constexpr auto name = "erfinv";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) {
    const auto one = x.like(1), a = x.abs(), rest = one - a;
    const auto is_tail = a > x.like(0.7);
    const auto square = a * a;
    const auto middle =
        a * polynomial(square, {0.886226899, -1.645349621, 0.914624893, -0.140543331}) /
        (one + square * polynomial(square, {-2.118377725, 1.442710462, -0.329097515, 0.012229801}));
    const auto z = (x.like(std::numbers::ln2) - rest.log()).sqrt();
    const auto tail = polynomial(z, {-1.970840454, -1.624906493, 3.429567803, 1.641345311}) /
                      (one + z * polynomial(z, {3.543889200, 1.637067800}));
    auto y = is_tail.select(tail, middle);
    for (int i = 0; i < 2; ++i) {
      const auto error = is_tail.select(rest - y.erfc(), y.erf() - a);
      y = y - error / ((-(y * y)).exp() * x.like(2 * std::numbers::inv_sqrtpi));
    }
    y = (a == one).select(x.like(std::numeric_limits<double>::infinity()), y);
    return (x == x.like(0)).select(x, (x < x.like(0)).select(-y, y));
  }
  static constexpr void gradient(auto& g) {
    g.to(0, g.grad() * (xla::exp(g.out() * g.out()) * (0.5 / std::numbers::inv_sqrtpi)));
  }

 private:
  template <class Lane, std::size_t N>
  static constexpr Lane polynomial(Lane x, const double (&c)[N]) {
    Lane y = x.like(c[N - 1]);
    for (std::size_t i = N - 1; i-- > 0;) y = y * x + x.like(c[i]);
    return y;
  }
};

}  // namespace xla::op

XLA_OP(xla::op::erfinv, fractions);

namespace xla {

/// The inverse of erf for each element; infinite at -1 and 1, NaN beyond. Within 8 ulp.
template <class T, int R>
constexpr Tensor<T, R> erfinv(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::erfinv: needs float or double; cast first");
  return detail::apply<op::erfinv, T, T, R>(detail::plain, x);
}

}  // namespace xla
