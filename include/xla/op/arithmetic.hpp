// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/scalar.hpp"

namespace xla::op {

struct add : map {
  static constexpr auto name = "add";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a + b; }
  static constexpr void gradient(auto& g) {
    if (g.wants(0)) g.to(0, g.grad());
    if (g.wants(1)) g.to(1, g.grad());
  }
};

struct sub : map {
  static constexpr auto name = "sub";
  static constexpr auto kernel(auto a, auto b) { return a - b; }
  static constexpr void gradient(auto& g) {
    if (g.wants(0)) g.to(0, g.grad());
    if (g.wants(1)) g.to(1, -g.grad());
  }
};

struct mul : map {
  static constexpr auto name = "mul";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a * b; }
  static constexpr void gradient(auto& g) {
    if (g.wants(0)) g.to(0, g.grad() * g.in(1));
    if (g.wants(1)) g.to(1, g.grad() * g.in(0));
  }
};

struct div : map {
  static constexpr auto name = "div";
  static constexpr auto kernel(auto a, auto b) { return a / b; }
  static constexpr void gradient(auto& g) {
    const auto quotient = g.grad() / g.in(1);
    if (g.wants(0)) g.to(0, quotient);
    if (g.wants(1)) g.to(1, -(quotient * g.out()));
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

/// Element by element, broadcasting as NumPy does; a number stands on either side.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator+(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return detail::map_binary<op::add, T>(a, b);
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator-(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return detail::map_binary<op::sub, T>(a, b);
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator*(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return detail::map_binary<op::mul, T>(a, b);
}
/// Integers divide towards zero, and by zero give zero.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator/(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return detail::map_binary<op::div, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator-(const Tensor<T, R>& a) {
  return detail::apply<op::neg, T, T, R>(detail::plain, a);
}

template <class T, int R>
constexpr Tensor<T, R> operator+(const Tensor<T, R>& a, detail::number_of<T> b) {
  return detail::map_number<op::add, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator-(const Tensor<T, R>& a, detail::number_of<T> b) {
  return detail::map_number<op::sub, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator*(const Tensor<T, R>& a, detail::number_of<T> b) {
  return detail::map_number<op::mul, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator/(const Tensor<T, R>& a, detail::number_of<T> b) {
  return detail::map_number<op::div, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator+(detail::number_of<T> a, const Tensor<T, R>& b) {
  return detail::number_map<op::add, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator-(detail::number_of<T> a, const Tensor<T, R>& b) {
  return detail::number_map<op::sub, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator*(detail::number_of<T> a, const Tensor<T, R>& b) {
  return detail::number_map<op::mul, T>(a, b);
}
template <class T, int R>
constexpr Tensor<T, R> operator/(detail::number_of<T> a, const Tensor<T, R>& b) {
  return detail::number_map<op::div, T>(a, b);
}

namespace detail {
template <class T, class U>
concept unlike = !std::is_same_v<T, U>;
/// Stops the build where element types differ.
template <class T, class U>
constexpr Tensor<T, dynamic_rank> refuse_types() {
  static_assert(
      std::is_same_v<T, U>,
      "xla: the element types of the two tensors differ; convert one: xla::cast<float>(x)");
  return {};
}
}  // namespace detail

template <class T, int A, detail::unlike<T> U, int B>
constexpr auto operator+(const Tensor<T, A>&, const Tensor<U, B>&) {
  return detail::refuse_types<T, U>();
}
template <class T, int A, detail::unlike<T> U, int B>
constexpr auto operator-(const Tensor<T, A>&, const Tensor<U, B>&) {
  return detail::refuse_types<T, U>();
}
template <class T, int A, detail::unlike<T> U, int B>
constexpr auto operator*(const Tensor<T, A>&, const Tensor<U, B>&) {
  return detail::refuse_types<T, U>();
}
template <class T, int A, detail::unlike<T> U, int B>
constexpr auto operator/(const Tensor<T, A>&, const Tensor<U, B>&) {
  return detail::refuse_types<T, U>();
}

}  // namespace xla
