// SPDX-License-Identifier: Apache-2.0
#pragma once

// Logical and, or, not and xor, with their operators. Both sides are computed.

#include "xla/op/compare.hpp"

namespace xla::op {

struct logical_and : map {
  static constexpr auto name = "logical_and";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a && b; }
};

struct logical_or : map {
  static constexpr auto name = "logical_or";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a || b; }
};

struct logical_not : map {
  static constexpr auto name = "logical_not";
  static constexpr auto kernel(auto a) { return !a; }
};

}  // namespace xla::op

XLA_OP(xla::op::logical_and, booleans);
XLA_OP(xla::op::logical_or, booleans);
XLA_OP(xla::op::logical_not, booleans);

namespace xla {

/// Both hold, element by element. Both sides are always computed.
template <int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> operator&&(const Tensor<bool, A>& a,
                                                          const Tensor<bool, B>& b) {
  return detail::apply<op::logical_and, bool, bool, detail::broadcast_rank(A, B)>(detail::plain, a,
                                                                                  b);
}
/// Either holds, element by element. Both sides are always computed.
template <int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> operator||(const Tensor<bool, A>& a,
                                                          const Tensor<bool, B>& b) {
  return detail::apply<op::logical_or, bool, bool, detail::broadcast_rank(A, B)>(detail::plain, a,
                                                                                 b);
}
template <int R>
constexpr Tensor<bool, R> operator!(const Tensor<bool, R>& a) {
  return detail::apply<op::logical_not, bool, bool, R>(detail::plain, a);
}

/// a && b by name.
template <int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> logical_and(const Tensor<bool, A>& a,
                                                           const Tensor<bool, B>& b,
                                                           caller loc = here()) {
  return detail::map_binary<op::logical_and, bool>(a, b, loc);
}
/// a || b by name.
template <int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> logical_or(const Tensor<bool, A>& a,
                                                          const Tensor<bool, B>& b,
                                                          caller loc = here()) {
  return detail::map_binary<op::logical_or, bool>(a, b, loc);
}
/// !a by name.
template <int R>
constexpr Tensor<bool, R> logical_not(const Tensor<bool, R>& a) {
  return !a;
}
/// One of them holds and the other does not, element by element. Sizes that do not broadcast are a
/// shape_error.
template <int A, int B>
constexpr detail::broadcast_tensor<bool, A, B> logical_xor(const Tensor<bool, A>& a,
                                                           const Tensor<bool, B>& b,
                                                           caller loc = here()) {
  detail::check_broadcast({"logical_xor", loc}, a, b);
  return detail::map_binary<op::ne, bool>(a, b, loc);
}

}  // namespace xla
