// SPDX-License-Identifier: Apache-2.0
#pragma once

// erf(), erfc() and ndtr(): elementwise ops.

#include <numbers>

#include "xla/op/exponential.hpp"

namespace xla::op {

struct erf : map {
  static constexpr auto name = "erf";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.erf(); }
  static constexpr void gradient(auto& g) {
    g.to(0, g.grad() * (xla::exp(-(g.in(0) * g.in(0))) * (2 * std::numbers::inv_sqrtpi)));
  }
};

struct erfc : map {
  static constexpr auto name = "erfc";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.erfc(); }
  static constexpr void gradient(auto& g) {
    g.to(0, g.grad() * (xla::exp(-(g.in(0) * g.in(0))) * (-2 * std::numbers::inv_sqrtpi)));
  }
};

struct ndtr : map {
  static constexpr auto name = "ndtr";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.ndtr(); }
  static constexpr void gradient(auto& g) {
    constexpr double density_at_0 = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    g.to(0, g.grad() * (xla::exp(g.in(0) * g.in(0) * -0.5) * density_at_0));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::erf, fractions);
XLA_OP(xla::op::erfc, fractions);
XLA_OP(xla::op::ndtr, fractions);

namespace xla {

/// The error function of each element. Within 2 ulp.
template <class T, int R>
constexpr Tensor<T, R> erf(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::erf: needs float or double; cast first");
  return detail::apply<op::erf, T, T, R>(detail::plain, x);
}
/// 1 - erf(x) without its cancellation. Within 5 ulp until it is below the normal numbers.
template <class T, int R>
constexpr Tensor<T, R> erfc(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::erfc: needs float or double; cast first");
  return detail::apply<op::erfc, T, T, R>(detail::plain, x);
}
/// The standard normal distribution's probability of a number below each element,
/// torch.special.ndtr. Within 5 ulp until it is below the normal numbers.
template <class T, int R>
constexpr Tensor<T, R> ndtr(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::ndtr: needs float or double; cast first");
  return detail::apply<op::ndtr, T, T, R>(detail::plain, x);
}

}  // namespace xla
