// SPDX-License-Identifier: Apache-2.0
#pragma once

// sinh(), cosh(), log2(), logit(), hypot() and other elementwise ops of one line. functions.hpp
// has them; xla.hpp does not.

#include <limits>
#include <numbers>

#include "xla/op/clip.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/root.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/trigonometric.hpp"
#include "xla/op/where.hpp"

namespace xla {
template <class T, int R>
constexpr Tensor<T, R> sinh(const Tensor<T, R>& x);
template <class T, int R>
constexpr Tensor<T, R> cosh(const Tensor<T, R>& x);
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> xlogy(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                  caller loc = here());
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> xlog1py(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                    caller loc = here());
}  // namespace xla

namespace xla::op {

// Half the square of exp does not overflow yet where exp itself does.

struct sinh : map {
  static constexpr auto name = "sinh";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) {
    const auto half = x.like(0.5), a = x.abs(), e = a.expm1(), root = (a * half).exp();
    const auto near = (e + e / (e + x.like(1))) * half;
    const auto y = (a < x.like(20)).select(near, (root * half) * root);
    return (x == x.like(0)).select(x, (x < x.like(0)).select(-y, y));
  }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * xla::cosh(g.in(0))); }
};

struct cosh : map {
  static constexpr auto name = "cosh";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) {
    const auto half = x.like(0.5), a = x.abs(), e = a.exp(), root = (a * half).exp();
    return (a < x.like(20)).select((e + x.like(1) / e) * half, (root * half) * root);
  }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * xla::sinh(g.in(0))); }
};

struct log2 : map {
  static constexpr auto name = "log2";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) { return x.log2(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() / (g.in(0) * std::numbers::ln2)); }
};

struct log10 : map {
  static constexpr auto name = "log10";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) { return x.log10(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() / (g.in(0) * std::numbers::ln10)); }
};

/// The larger of two plus the contribution of the smaller: for equal ones, including infinities,
/// log 2.
struct logit : map {
  static constexpr auto name = "logit";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) { return (x / (x.like(1) - x)).log(); }
  static constexpr void gradient(auto& g) {
    const auto x = g.in(0), slope = g.grad() / (x * (1 - x));
    g.to(0, xla::where(x >= 0 && x <= 1, slope, std::numeric_limits<double>::quiet_NaN()));
  }
};

struct logaddexp : map {
  static constexpr auto name = "logaddexp";
  static constexpr bool costly = true;
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) {
    const auto more = (-(a - b).abs()).exp().log1p();
    return (a == b).select(a + a.like(std::numbers::ln2), a.max_nan(b) + more);
  }
  static constexpr void gradient(auto& g) {
    const auto a = g.in(0), b = g.in(1);
    const auto share = xla::where(a == b, 0.5, xla::sigmoid(a - b));  // for infinities, too
    if (g.needs(0)) g.to(0, g.grad() * share);
    if (g.needs(1)) g.to(1, g.grad() * (1 - share));
  }
};

struct hypot : map {
  static constexpr auto name = "hypot";
  static constexpr bool costly = true;
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto x, auto y) {
    const auto a = x.abs(), b = y.abs(), one = x.like(1), zero = x.like(0);
    const auto large = a.max_nan(b), ratio = a.min_nan(b) / large;
    const auto length = (large == zero).select(large, large * (one + ratio * ratio).sqrt());
    const auto infinite = x.like(std::numeric_limits<double>::infinity());
    return (a == infinite).select(infinite, (b == infinite).select(infinite, length));
  }
  static constexpr void gradient(auto& g) {
    const auto scale = g.grad() / g.out();
    if (g.needs(0)) g.to(0, scale * g.in(0));
    if (g.needs(1)) g.to(1, scale * g.in(1));
  }
};

struct xlogy : map {
  static constexpr auto name = "xlogy";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x, auto y) {
    const auto zero = x.like(0);
    return (x == zero).select((y == y).select(zero, y), x * y.log());
  }
  static constexpr void gradient(auto& g) {
    const auto x = g.in(0), y = g.in(1);
    if (g.needs(0)) g.to(0, xla::where(x == 0 && y <= 0, 0, xla::xlogy(g.grad(), y)));
    if (g.needs(1)) g.to(1, xla::where(x == 0, 0, g.grad() * x / y));
  }
};

struct xlog1py : map {
  static constexpr auto name = "xlog1py";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x, auto y) {
    const auto zero = x.like(0);
    return (x == zero).select((y == y).select(zero, y), x * y.log1p());
  }
  static constexpr void gradient(auto& g) {
    const auto x = g.in(0), y = g.in(1);
    if (g.needs(0)) g.to(0, xla::where(x == 0 && y <= -1, 0, xla::xlog1py(g.grad(), y)));
    if (g.needs(1)) g.to(1, xla::where(x == 0, 0, g.grad() * x / (y + 1)));
  }
};

struct sinc : map {
  static constexpr auto name = "sinc";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) {
    const auto angle = x * x.like(std::numbers::pi);
    return (x == x.like(0)).select(x.like(1), angle.sin() / angle);
  }
  static constexpr void gradient(auto& g) {
    using std::numbers::pi;
    const auto x = g.in(0), angle = x * pi, square = angle * angle;
    // Near 0 the difference cancels, so Taylor's series is used.
    const auto series = (((square * (1. / 45360) - 1. / 840) * square + 1. / 30) * square - 1. / 3);
    const auto away = (angle * xla::cos(angle) - xla::sin(angle)) / (x * angle);
    g.to(0, g.grad() * xla::where(square < 0.1, angle * series * pi, away));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::sinh, fractions);
XLA_OP(xla::op::cosh, fractions);
XLA_OP(xla::op::log2, fractions);
XLA_OP(xla::op::log10, fractions);
XLA_OP(xla::op::logit, fractions);
XLA_OP(xla::op::logaddexp, fractions);
XLA_OP(xla::op::hypot, fractions);
XLA_OP(xla::op::xlogy, fractions);
XLA_OP(xla::op::xlog1py, fractions);
XLA_OP(xla::op::sinc, fractions);

namespace xla {

/// The hyperbolic sine of each element. Within 4 ulp.
template <class T, int R>
constexpr Tensor<T, R> sinh(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::sinh: needs float or double; cast first");
  return detail::apply<op::sinh, T, T, R>(detail::plain, x);
}
/// The hyperbolic cosine of each element. Within 4 ulp.
template <class T, int R>
constexpr Tensor<T, R> cosh(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::cosh: needs float or double; cast first");
  return detail::apply<op::cosh, T, T, R>(detail::plain, x);
}
/// The logarithm of each element to base 2, exact for powers of it.
template <class T, int R>
constexpr Tensor<T, R> log2(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::log2: needs float or double; cast first");
  return detail::apply<op::log2, T, T, R>(detail::plain, x);
}
/// The logarithm of each element to base 10.
template <class T, int R>
constexpr Tensor<T, R> log10(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::log10: needs float or double; cast first");
  return detail::apply<op::log10, T, T, R>(detail::plain, x);
}
/// log(x / (1 - x)), sigmoid's inverse; infinite at 0 and 1, NaN beyond.
template <class T, int R>
constexpr Tensor<T, R> logit(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::logit: needs float or double; cast first");
  return detail::apply<op::logit, T, T, R>(detail::plain, x);
}
/// The same for x held within [eps, 1 - eps].
template <class T, int R>
constexpr Tensor<T, R> logit(const Tensor<T, R>& x, double eps) {
  return logit(clamp(x, eps, 1 - eps));
}
/// log(exp(a) + exp(b)), element by element, broadcast; nothing overflows on the way. Sizes that do
/// not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> logaddexp(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                      caller loc = here()) {
  static_assert(floating_type<T>, "xla::logaddexp: needs float or double; cast first");
  return detail::map_binary<op::logaddexp, T>(a, b, loc);
}
/// sqrt(x x + y y), element by element, broadcast; nothing overflows on the way. Sizes that do not
/// broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> hypot(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                  caller loc = here()) {
  static_assert(floating_type<T>, "xla::hypot: needs float or double; cast first");
  return detail::map_binary<op::hypot, T>(x, y, loc);
}
/// x log(y), and 0 if x is 0 unless y is NaN, element by element, broadcast. The gradient of y is 0
/// if x is. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> xlogy(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                  caller loc) {
  static_assert(floating_type<T>, "xla::xlogy: needs float or double; cast first");
  return detail::map_binary<op::xlogy, T>(x, y, loc);
}
/// x log(1 + y), like xlogy().
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> xlog1py(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                    caller loc) {
  static_assert(floating_type<T>, "xla::xlog1py: needs float or double; cast first");
  return detail::map_binary<op::xlog1py, T>(x, y, loc);
}
/// sin(pi x) / (pi x), and 1 at 0.
template <class T, int R>
constexpr Tensor<T, R> sinc(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::sinc: needs float or double; cast first");
  return detail::apply<op::sinc, T, T, R>(detail::plain, x);
}

}  // namespace xla
