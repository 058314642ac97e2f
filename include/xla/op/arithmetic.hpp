// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums, differences, products, quotients, negation, and their operators. Broadcasting is in
// rule.hpp; quotients rounded down are in floor_divide.hpp.

#include "xla/op/cast.hpp"
#include "xla/op/logical.hpp"

namespace xla::op {

struct add : map {
  static constexpr auto name = "add";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a + b; }
  static constexpr void gradient(auto& g) {
    if (g.needs(0)) g.to(0, g.grad());
    if (g.needs(1)) g.to(1, g.grad());
  }
};

struct sub : map {
  static constexpr auto name = "sub";
  static constexpr auto kernel(auto a, auto b) { return a - b; }
  static constexpr void gradient(auto& g) {
    if (g.needs(0)) g.to(0, g.grad());
    if (g.needs(1)) g.to(1, -g.grad());
  }
};

struct mul : map {
  static constexpr auto name = "mul";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a * b; }
  static constexpr void gradient(auto& g) {
    if (g.needs(0)) g.to(0, g.grad() * g.in(1));
    if (g.needs(1)) g.to(1, g.grad() * g.in(0));
  }
};

/// Integer division truncates, and gives 0 for a divisor of 0.
struct div : map {
  static constexpr auto name = "div";
  static constexpr auto kernel(auto a, auto b) { return a / b; }
  static constexpr void gradient(auto& g) {
    const auto quotient = g.grad() / g.in(1);
    if (g.needs(0)) g.to(0, quotient);
    if (g.needs(1)) g.to(1, -(quotient * g.out()));
  }
};

struct neg : map {
  static constexpr auto name = "neg";
  static constexpr auto kernel(auto a) { return -a; }
  static constexpr void gradient(auto& g) { g.to(0, -g.grad()); }
};

}  // namespace xla::op

XLA_OP(xla::op::add, numbers);
XLA_OP(xla::op::sub, numbers);
XLA_OP(xla::op::mul, numbers);
XLA_OP(xla::op::div, numbers);
XLA_OP(xla::op::neg, numbers);

namespace xla {
namespace detail {

/// The element type of a quotient, as in PyTorch: integers and bool become floating-point numbers,
/// of the other operand's type or float.
template <class T, class U = T>
using quotient_type =
    std::conditional_t<floating_type<T>, T, std::conditional_t<floating_type<U>, U, float>>;
/// Element types that divide each other; two different floating-point types do not.
template <class T, class U>
concept divides = std::is_same_v<T, U> || !floating_type<T> || !floating_type<U>;

/// An operand of a quotient of these elements.
template <class Quotient, class T, int R>
constexpr decltype(auto) quotient_operand(const Tensor<T, R>& x) {
  if constexpr (std::is_same_v<Quotient, T>) return (x);
  else return cast<Quotient>(x);
}

/// Applies one op to numbers and another one to bool.
template <class Numbers, class Booleans, class T, int A, int B>
constexpr broadcast_tensor<T, A, B> add_or_multiply(const Tensor<T, A>& a, const Tensor<T, B>& b) {
  return map_binary<std::conditional_t<std::is_same_v<T, bool>, Booleans, Numbers>, T>(a, b);
}
/// Stops the build for bool, whose results would not be bool.
template <class T>
constexpr void check_numbers() {
  static_assert(!std::is_same_v<T, bool>,
                "xla: tensors of bool have no -, and no number is added to them or multiplied; "
                "write ~x for 1 - x, a ^ b for a - b, and xla::cast<float>(x) where bools count "
                "as numbers");
}
/// Op, or for bool a comparison, so that the refusal is the only error of the build.
template <class Op, class T>
using numbers_only = std::conditional_t<std::is_same_v<T, bool>, op::ne, Op>;

}  // namespace detail

/// Elementwise, with NumPy's broadcasting; either side may be a number. For bool + is "or" and * is
/// "and".
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator+(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return detail::add_or_multiply<op::add, op::logical_or>(a, b);
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator-(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  detail::check_numbers<T>();
  return detail::map_binary<detail::numbers_only<op::sub, T>, T>(a, b);
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator*(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return detail::add_or_multiply<op::mul, op::logical_and>(a, b);
}
/// The true quotient: for integers and bool a tensor of float, or of the other operand's
/// floating-point type. floor_divide() and div(…, Rounding::trunc) give integers.
template <class T, int A, class U, int B>
  requires detail::divides<T, U>
constexpr detail::broadcast_tensor<detail::quotient_type<T, U>, A, B> operator/(
    const Tensor<T, A>& a, const Tensor<U, B>& b) {
  using Q = detail::quotient_type<T, U>;
  return detail::map_binary<op::div, Q>(detail::quotient_operand<Q>(a),
                                        detail::quotient_operand<Q>(b));
}
template <class T, int R>
constexpr Tensor<T, R> operator-(const Tensor<T, R>& a) {
  detail::check_numbers<T>();
  return detail::apply<std::conditional_t<std::is_same_v<T, bool>, op::logical_not, op::neg>, T, T,
                       R>(detail::plain, a);
}

template <class T, int R>
constexpr Tensor<T, R> operator+(const Tensor<T, R>& a, detail::number_of<T> b) {
  detail::check_numbers<T>();
  return detail::map_number<detail::numbers_only<op::add, T>, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator-(const Tensor<T, R>& a, detail::number_of<T> b) {
  detail::check_numbers<T>();
  return detail::map_number<detail::numbers_only<op::sub, T>, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator*(const Tensor<T, R>& a, detail::number_of<T> b) {
  detail::check_numbers<T>();
  return detail::map_number<detail::numbers_only<op::mul, T>, T>(a, b);
}
template <class T, int R>
constexpr Tensor<detail::quotient_type<T>, R> operator/(
    const Tensor<T, R>& a, detail::number_of<detail::quotient_type<T>> b) {
  using Q = detail::quotient_type<T>;
  return detail::map_number<op::div, Q>(detail::quotient_operand<Q>(a), b);
}
template <class T, int R>
constexpr Tensor<T, R> operator+(detail::number_of<T> a, const Tensor<T, R>& b) {
  detail::check_numbers<T>();
  return detail::number_map<detail::numbers_only<op::add, T>, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator-(detail::number_of<T> a, const Tensor<T, R>& b) {
  detail::check_numbers<T>();
  return detail::number_map<detail::numbers_only<op::sub, T>, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator*(detail::number_of<T> a, const Tensor<T, R>& b) {
  detail::check_numbers<T>();
  return detail::number_map<detail::numbers_only<op::mul, T>, T>(a, b);
}
template <class T, int R>
constexpr Tensor<detail::quotient_type<T>, R> operator/(
    detail::number_of<detail::quotient_type<T>> a, const Tensor<T, R>& b) {
  using Q = detail::quotient_type<T>;
  return detail::number_map<op::div, Q>(a, detail::quotient_operand<Q>(b));
}

namespace detail {
/// Stops the build if a quotient would be assigned to a tensor of integers (x /= y).
template <class T>
constexpr void refuse_whole_quotient() {
  static_assert(floating_type<T>,
                "xla: /= of a tensor of integers or bool would truncate fractions; write "
                "x = xla::floor_divide(x, y), or auto z = x / y, a tensor of float");
}
}  // namespace detail

XLA_DETAIL_REFUSE_TYPES(operator+);
XLA_DETAIL_REFUSE_TYPES(operator-);
XLA_DETAIL_REFUSE_TYPES(operator*);
template <class T, int A, detail::unlike<T> U, int B>
  requires(!detail::divides<T, U>)
constexpr auto operator/(const Tensor<T, A>&, const Tensor<U, B>&) {
  return detail::refuse_types<T, U>();
}

}  // namespace xla
