// SPDX-License-Identifier: Apache-2.0
#pragma once

// asin(), acos(), atan() and their hyperbolic counterparts: elementwise ops.

#include <limits>
#include <numbers>

#include "xla/op/root.hpp"
#include "xla/op/trigonometric.hpp"

namespace xla::op {

struct asin : map {
  static constexpr auto name = "asin";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) {
    const auto one = a.like(1);
    return a.atan2(((one - a) * (one + a)).sqrt());
  }
  static constexpr void gradient(auto& g) {
    g.to(0, g.grad() * xla::rsqrt(1 - g.in(0) * g.in(0)));
  }
};

struct acos : map {
  static constexpr auto name = "acos";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) {
    const auto one = a.like(1);
    return ((one - a) * (one + a)).sqrt().atan2(a);
  }
  static constexpr void gradient(auto& g) {
    g.to(0, -(g.grad() * xla::rsqrt(1 - g.in(0) * g.in(0))));
  }
};

struct atan : map {
  static constexpr auto name = "atan";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.atan(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() / (g.in(0) * g.in(0) + 1)); }
};

// The inverse hyperbolic functions by log1p, which is exact near 0; beyond 1e8 the 1 under the root
// no longer matters, and the square could overflow.

struct asinh : map {
  static constexpr auto name = "asinh";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) {
    const auto one = x.like(1), a = x.abs(), square = a * a;
    const auto near = (a + square / (one + (one + square).sqrt())).log1p();
    const auto far = a.log() + x.like(std::numbers::ln2);
    const auto y = (a < x.like(1e8)).select(near, far);
    return (x == x.like(0)).select(x, (x < x.like(0)).select(-y, y));
  }
  static constexpr void gradient(auto& g) {
    g.to(0, g.grad() * xla::rsqrt(g.in(0) * g.in(0) + 1));
  }
};

struct acosh : map {
  static constexpr auto name = "acosh";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) {
    const auto one = x.like(1), t = x - one;
    const auto near = (t + (t * (x + one)).sqrt()).log1p();
    const auto far = x.log() + x.like(std::numbers::ln2);
    const auto y = (x < x.like(1e8)).select(near, far);
    return (x < one).select(x.like(std::numeric_limits<double>::quiet_NaN()), y);
  }
  static constexpr void gradient(auto& g) {
    g.to(0, g.grad() * xla::rsqrt(g.in(0) * g.in(0) - 1));
  }
};

struct atanh : map {
  static constexpr auto name = "atanh";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) {
    const auto a = x.abs(), y = ((a + a) / (x.like(1) - a)).log1p() * x.like(0.5);
    return (x == x.like(0)).select(x, (x < x.like(0)).select(-y, y));
  }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() / (1 - g.in(0) * g.in(0))); }
};

}  // namespace xla::op

XLA_OP(xla::op::asin, fractions);
XLA_OP(xla::op::acos, fractions);
XLA_OP(xla::op::atan, fractions);
XLA_OP(xla::op::asinh, fractions);
XLA_OP(xla::op::acosh, fractions);
XLA_OP(xla::op::atanh, fractions);

namespace xla {

/// The angle in radians, from -pi/2 to pi/2, whose sine is each element; NaN outside [-1, 1].
/// Within 3 ulp.
template <class T, int R>
constexpr Tensor<T, R> asin(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::asin: needs float or double; cast first");
  return detail::apply<op::asin, T, T, R>(detail::plain, x);
}
/// The angle in radians, from 0 to pi, whose cosine is each element; NaN outside [-1, 1]. Within
/// 3 ulp.
template <class T, int R>
constexpr Tensor<T, R> acos(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::acos: needs float or double; cast first");
  return detail::apply<op::acos, T, T, R>(detail::plain, x);
}
/// The angle in radians, from -pi/2 to pi/2, whose tangent is each element. Within 1 ulp.
template <class T, int R>
constexpr Tensor<T, R> atan(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::atan: needs float or double; cast first");
  return detail::apply<op::atan, T, T, R>(detail::plain, x);
}
/// The number whose hyperbolic sine is each element. Within 4 ulp.
template <class T, int R>
constexpr Tensor<T, R> asinh(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::asinh: needs float or double; cast first");
  return detail::apply<op::asinh, T, T, R>(detail::plain, x);
}
/// The number from 0 on whose hyperbolic cosine is each element; NaN below 1. Within 4 ulp.
template <class T, int R>
constexpr Tensor<T, R> acosh(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::acosh: needs float or double; cast first");
  return detail::apply<op::acosh, T, T, R>(detail::plain, x);
}
/// The number whose hyperbolic tangent is each element; infinite at -1 and 1, NaN beyond. Within
/// 4 ulp.
template <class T, int R>
constexpr Tensor<T, R> atanh(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::atanh: needs float or double; cast first");
  return detail::apply<op::atanh, T, T, R>(detail::plain, x);
}

}  // namespace xla
