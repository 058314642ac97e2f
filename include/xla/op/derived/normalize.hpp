// SPDX-License-Identifier: Apache-2.0
#pragma once

// layer_norm() and rms_norm(), and the two elementwise ops that they are fused from.

#include <limits>

#include "xla/op/reduce.hpp"
#include "xla/op/root.hpp"

namespace xla::op {

/// (x - m)^2 where m is the mean of x: moving m does not change their sum to first order, so m has
/// no gradient.
struct squared_deviation : map {
  static constexpr auto name = "squared_deviation";
  static constexpr auto kernel(auto x, auto m) { return (x - m) * (x - m); }
  static constexpr void gradient(auto& g) {
    if (!g.needs(0)) return;
    const auto half = g.grad() * (g.in(0) - g.in(1));
    g.to(0, half + half);
  }
};

/// (x - m) r with a mean m and a scale r for each row. m's part of the gradient is summed before it
/// is multiplied by r, so that the sum need not wait for r.
struct standardize : map {
  static constexpr auto name = "standardize";
  static constexpr auto kernel(auto x, auto m, auto r) { return (x - m) * r; }
  static constexpr void gradient(auto& g) {
    if (g.needs(0)) g.to(0, g.grad() * g.in(2));
    if (g.needs(1)) g.to(1, -(detail::sum_to(g.grad(), g.in(1).dims()) * g.in(2)));
    if (g.needs(2)) g.to(2, g.grad() * (g.in(0) - g.in(1)));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::squared_deviation, fractions);
XLA_OP(xla::op::standardize, fractions);

namespace xla {
namespace detail {

template <class T, int R>
constexpr void check_eps(const Tensor<T, R>& x, const number<T>& eps) {
  if (eps.outside(0, std::numeric_limits<double>::infinity()))
    refuse_now(x, "xla: eps of a normalization is at least 0");
}

/// Refuses a weight or bias without one element per element of x's last axis.
template <class T, int R>
constexpr void check_features(const Tensor<T, R>& x, const Tensor<T, 1>& p, const call_site& site) {
  static_assert(R >= 1, "xla: normalization needs at least one axis");
  const shape s = x.dims(), f = p.dims();
  const size_scope scope{x.table() ? x.table() : p.table(), site};
  if (extent e = s[R - 1]; !scope.equal(e, f[0]))
    scope.fail(text("the last axis of ") << s << " and the parameters " << f << " differ");
}

/// One over the root of a variance or mean square, to which eps is added.
template <class C, int R, class T>
constexpr Tensor<C, R> norm_scale(const Tensor<C, R>& square, const number<T>& eps) {
  return rsqrt(apply<op::add, C, C, R>(plain, square, eps.operand()));
}
/// layer_norm() without rounding.
template <class T, int R>
constexpr Tensor<computed<T>, R> wide_layer_norm(const Tensor<T, R>& x, const number<T>& eps) {
  check_eps(x, eps);
  static_assert(R >= 1, "xla::layer_norm: needs at least one axis");
  using C = computed<T>;
  const auto w = widened(x);
  const auto m = mean(w, {-1}, keepdim);
  const auto square = map_binary<op::squared_deviation, C>(w, m);
  const auto scale = norm_scale(mean(square, {-1}, keepdim), eps);
  return apply<op::standardize, C, C, R>(plain, w, m, scale);
}
/// rms_norm() without rounding.
template <class T, int R>
constexpr Tensor<computed<T>, R> wide_rms_norm(const Tensor<T, R>& x, const number<T>& eps) {
  check_eps(x, eps);
  static_assert(R >= 1, "xla::rms_norm: needs at least one axis");
  const auto w = widened(x);
  return w * norm_scale(mean(w * w, {-1}, keepdim), eps);
}

}  // namespace detail

/// x minus its mean, divided by its standard deviation, along the last axis. Ba, Kiros, Hinton
/// (2016).
template <class T, int R>
constexpr Tensor<T, R> layer_norm(const Tensor<T, R>& x, detail::number_of<T> eps = 1e-5) {
  return detail::narrowed<T>(detail::wide_layer_norm(x, eps));
}
/// The same multiplied by weight and increased by bias, each with one element per element of the
/// last axis. Another number of them is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> layer_norm(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                                  const Tensor<T, 1>& bias, detail::number_of<T> eps = 1e-5,
                                  caller loc = here()) {
  detail::check_features(x, weight, {"layer_norm", loc});
  detail::check_features(x, bias, {"layer_norm", loc});
  return detail::narrowed<T>(detail::wide_layer_norm(x, eps) * detail::widened(weight) +
                             detail::widened(bias));
}

/// The same without a bias.
template <class T, int R>
constexpr Tensor<T, R> layer_norm(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                                  detail::number_of<T> eps = 1e-5, caller loc = here()) {
  detail::check_features(x, weight, {"layer_norm", loc});
  return detail::narrowed<T>(detail::wide_layer_norm(x, eps) * detail::widened(weight));
}

/// x over the root of its mean square along the last axis. Zhang and Sennrich (2019).
template <class T, int R>
constexpr Tensor<T, R> rms_norm(const Tensor<T, R>& x,
                                detail::number_of<T> eps = std::numeric_limits<T>::epsilon()) {
  return detail::narrowed<T>(detail::wide_rms_norm(x, eps));
}
/// The same times weight: one element per element of the last axis. Another number of them is a
/// shape_error.
template <class T, int R>
constexpr Tensor<T, R> rms_norm(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                                detail::number_of<T> eps = std::numeric_limits<T>::epsilon(),
                                caller loc = here()) {
  detail::check_features(x, weight, {"rms_norm", loc});
  return detail::narrowed<T>(detail::wide_rms_norm(x, eps) * detail::widened(weight));
}

}  // namespace xla
