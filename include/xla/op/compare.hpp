// SPDX-License-Identifier: Apache-2.0
#pragma once

// Comparisons, with their operators. Results are tensors of bool, and have no gradient.

#include "xla/op/scalar.hpp"

namespace xla::op {

struct eq : map {
  static constexpr auto name = "eq";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a == b; }
};

struct ne : map {
  static constexpr auto name = "ne";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a != b; }
};

struct lt : map {
  static constexpr auto name = "lt";
  static constexpr auto kernel(auto a, auto b) { return a < b; }
};

struct le : map {
  static constexpr auto name = "le";
  static constexpr auto kernel(auto a, auto b) { return a <= b; }
};

struct gt : map {
  static constexpr auto name = "gt";
  static constexpr auto kernel(auto a, auto b) { return a > b; }
};

struct ge : map {
  static constexpr auto name = "ge";
  static constexpr auto kernel(auto a, auto b) { return a >= b; }
};

}  // namespace xla::op

XLA_OP(xla::op::eq, comparisons);
XLA_OP(xla::op::ne, comparisons);
XLA_OP(xla::op::lt, comparisons);
XLA_OP(xla::op::le, comparisons);
XLA_OP(xla::op::gt, comparisons);
XLA_OP(xla::op::ge, comparisons);

namespace xla {

/// Comparisons, element by element: a tensor of bool. Comparing with NaN is false, but for !=.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> operator==(const Tensor<T, A>& a,
                                                          const Tensor<T, B>& b) {
  return detail::map_binary<op::eq, bool>(a, b);
}
XLA_DETAIL_WITH_NUMBERS(operator==, bool, op::eq);
template <class T, int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> operator!=(const Tensor<T, A>& a,
                                                          const Tensor<T, B>& b) {
  return detail::map_binary<op::ne, bool>(a, b);
}
XLA_DETAIL_WITH_NUMBERS(operator!=, bool, op::ne);
template <class T, int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> operator<(const Tensor<T, A>& a,
                                                         const Tensor<T, B>& b) {
  return detail::map_binary<op::lt, bool>(a, b);
}
XLA_DETAIL_WITH_NUMBERS(operator<, bool, op::lt);
template <class T, int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> operator<=(const Tensor<T, A>& a,
                                                          const Tensor<T, B>& b) {
  return detail::map_binary<op::le, bool>(a, b);
}
XLA_DETAIL_WITH_NUMBERS(operator<=, bool, op::le);
template <class T, int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> operator>(const Tensor<T, A>& a,
                                                         const Tensor<T, B>& b) {
  return detail::map_binary<op::gt, bool>(a, b);
}
XLA_DETAIL_WITH_NUMBERS(operator>, bool, op::gt);
template <class T, int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> operator>=(const Tensor<T, A>& a,
                                                          const Tensor<T, B>& b) {
  return detail::map_binary<op::ge, bool>(a, b);
}
XLA_DETAIL_WITH_NUMBERS(operator>=, bool, op::ge);

XLA_DETAIL_REFUSE_TYPES(operator==);
XLA_DETAIL_REFUSE_TYPES(operator!=);
XLA_DETAIL_REFUSE_TYPES(operator<);
XLA_DETAIL_REFUSE_TYPES(operator<=);
XLA_DETAIL_REFUSE_TYPES(operator>);
XLA_DETAIL_REFUSE_TYPES(operator>=);

}  // namespace xla
