// SPDX-License-Identifier: Apache-2.0
#pragma once

// lgamma(), digamma(), polygamma() and zeta(): elementwise ops.

#include "xla/op/pow.hpp"

namespace xla {
template <class T, int R>
constexpr Tensor<T, R> digamma(const Tensor<T, R>& x);
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> zeta(const Tensor<T, A>& s, const Tensor<T, B>& q,
                                                 caller loc = here());
template <class T, int R>
constexpr Tensor<T, R> zeta(detail::number_of<T> s, const Tensor<T, R>& q);
}  // namespace xla

namespace xla::op {

struct lgamma : map {
  static constexpr auto name = "lgamma";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.lgamma(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * xla::digamma(g.in(0))); }
};

struct zeta : map {
  static constexpr auto name = "zeta";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto s, auto q) { return s.zeta(q); }
  /// The gradient for the exponent s has no closed form, as in PyTorch.
  static constexpr void gradient(auto& g) {
    const auto s = g.in(0);
    if (g.needs(1))
      g.to(1, -(g.grad() * s * xla::zeta(s + 1, g.in(1), xla::detail::unknown_caller)));
  }
};

struct digamma : map {
  static constexpr auto name = "digamma";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.digamma(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * xla::zeta(2, g.in(0))); }
};

}  // namespace xla::op

XLA_OP(xla::op::lgamma, fractions);
XLA_OP(xla::op::digamma, fractions);
XLA_OP(xla::op::zeta, fractions);

namespace xla {

/// The logarithm of the gamma function's magnitude of each element; infinite at 0 and negative
/// whole numbers.
template <class T, int R>
constexpr Tensor<T, R> lgamma(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::lgamma: needs float or double; cast first");
  return detail::apply<op::lgamma, T, T, R>(detail::plain, x);
}
/// The derivative of lgamma; NaN at negative whole numbers.
template <class T, int R>
constexpr Tensor<T, R> digamma(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::digamma: needs float or double; cast first");
  return detail::apply<op::digamma, T, T, R>(detail::plain, x);
}

/// Hurwitz' zeta function, torch.special.zeta: the sum of 1 / (q + k)^s over all k >= 0, for s > 1,
/// element by element, broadcast. s gets no gradient. Sizes that do not broadcast are a
/// shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> zeta(const Tensor<T, A>& s, const Tensor<T, B>& q,
                                                 caller loc) {
  static_assert(floating_type<T>, "xla::zeta: needs float or double; cast first");
  return detail::map_binary<op::zeta, T>(s, q, loc);
}
template <class T, int R>
constexpr Tensor<T, R> zeta(detail::number_of<T> s, const Tensor<T, R>& q) {
  static_assert(floating_type<T>, "xla::zeta: needs float or double; cast first");
  return detail::number_map<op::zeta, T>(s, q);
}

/// The n-th derivative of digamma, n >= 0: polygamma(1, x) is the trigamma function. Throws
/// `xla::error` for n < 0.
template <class T, int R>
constexpr Tensor<T, R> polygamma(int n, const Tensor<T, R>& x, caller loc = here()) {
  static_assert(floating_type<T>, "xla::polygamma: needs float or double; cast first");
  if (n < 0) {
    detail::size_scope{x.table(), {"polygamma", loc}}.fail(detail::text("n is ")
                                                           << n << ", below 0");
    return x;
  }
  if (n == 0) return digamma(x);
  double factorial = n % 2 == 0 ? -1 : 1;
  for (int i = 2; i <= n; ++i) factorial *= i;
  return zeta(n + 1, x) * factorial;
}

/// The logarithm of the multivariate gamma function with dimension p: of each element x,
/// p (p - 1) / 4 log(pi) and the sum of lgamma(x - k / 2) over k < p.
template <class T, int R>
constexpr Tensor<T, R> mvlgamma(const Tensor<T, R>& x, int p) {
  Tensor<T, R> sum = lgamma(x);
  for (int k = 1; k < p; ++k) sum = sum + lgamma(x - 0.5 * k);
  constexpr double log_pi = 1.14472988584940017414;
  return sum + log_pi / 4 * p * (p - 1);
}

}  // namespace xla
