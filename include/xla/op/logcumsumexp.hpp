// SPDX-License-Identifier: Apache-2.0
#pragma once

// logcumsumexp(): a scan, with its gradient.

#include "xla/op/exponential.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/where.hpp"

namespace xla::op {

/// The logarithm of the sums of exp along an axis up to each element; the running value is the
/// logarithm, so that nothing overflows. A gradient is a difference of two such scans in the other
/// direction, of its positive and its negative elements.
struct logcumsumexp : scanning {
  static constexpr auto name = "logcumsumexp";
  static constexpr void gradient(auto& g) {
    const auto back = attributes{g.attributes().axis, !g.attributes().backward};
    const auto of = [&](const auto& part) {
      const auto log = xla::log(xla::where(part <= 0, 0, part));
      const auto after = detail::scan_by<logcumsumexp>(log - g.out(), back);
      return xla::exp(after + g.in(0));
    };
    g.to(0, of(g.grad()) - of(-g.grad()));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::logcumsumexp, fractions);

namespace xla {

/// log(cumsum(exp(x))) along an axis, without overflow. An axis that does not exist is a
/// shape_error.
template <class T, int R>
constexpr Tensor<T, R> logcumsumexp(const Tensor<T, R>& x, int axis, caller loc = here()) {
  static_assert(R >= 1, "xla::logcumsumexp: needs at least one axis");
  static_assert(floating_type<T>, "xla::logcumsumexp: needs float or double; cast first");
  return detail::scan_by<op::logcumsumexp>(x, {detail::axis_of(x, R, axis, {"logcumsumexp", loc})});
}

}  // namespace xla
