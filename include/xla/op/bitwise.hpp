// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bitwise and, or, xor and not of integers, with their operators; of bool they are the logical
// ops.

#include "xla/op/arithmetic.hpp"
#include "xla/op/logical.hpp"

namespace xla::op {

struct bitwise_and : map {
  static constexpr auto name = "bitwise_and";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a & b; }
};

struct bitwise_or : map {
  static constexpr auto name = "bitwise_or";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a | b; }
};

struct bitwise_xor : map {
  static constexpr auto name = "bitwise_xor";
  static constexpr bool commutative = true;
  static constexpr auto kernel(auto a, auto b) { return a ^ b; }
};

struct bitwise_not : map {
  static constexpr auto name = "bitwise_not";
  static constexpr auto kernel(auto a) { return ~a; }
};

}  // namespace xla::op

XLA_OP(xla::op::bitwise_and, indices);
XLA_OP(xla::op::bitwise_or, indices);
XLA_OP(xla::op::bitwise_xor, indices);
XLA_OP(xla::op::bitwise_not, indices);

namespace xla {
namespace detail {

template <class T>
constexpr void check_bits() {
  static_assert(std::is_integral_v<T>,
                "xla: & | ^ ~ take tensors of bool or integers; put comparisons in parentheses: "
                "(x > 0) & (y > 0)");
}
/// Integers bit by bit, bool by the logical op.
template <class Bits, class Booleans, class T, int A, int B>
constexpr broadcast_tensor<T, A, B> map_bits(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                             caller loc = unknown_caller) {
  check_bits<T>();
  if constexpr (std::is_same_v<T, bool>) return map_binary<Booleans, T>(a, b, loc);
  else if constexpr (std::is_integral_v<T>) return map_binary<Bits, T>(a, b, loc);
  else return {};
}
template <class Bits, class T, int R>
constexpr Tensor<T, R> map_bits(const Tensor<T, R>& a, const number<T>& b) {
  check_bits<T>();
  static_assert(!std::is_same_v<T, bool>,
                "xla: a number was given where a tensor of bool is taken; if its bits are meant, "
                "write xla::cast<std::int64_t>(x) for the other tensor");
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return map_number<Bits, T>(a, b);
  else return {};
}

}  // namespace detail

/// Logical and for bool, bitwise and for integers, element by element; both sides are always
/// computed. For integers one side may be a number. Put comparisons in parentheses: (x > 0) & (x <
/// 1). Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> bitwise_and(const Tensor<T, A>& a,
                                                        const Tensor<T, B>& b,
                                                        caller loc = here()) {
  return detail::map_bits<op::bitwise_and, op::logical_and>(a, b, loc);
}
/// Logical or, or bitwise or.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> bitwise_or(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                       caller loc = here()) {
  return detail::map_bits<op::bitwise_or, op::logical_or>(a, b, loc);
}
/// Exclusive or, logical or bitwise.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> bitwise_xor(const Tensor<T, A>& a,
                                                        const Tensor<T, B>& b,
                                                        caller loc = here()) {
  return detail::map_bits<op::bitwise_xor, op::ne>(a, b, loc);
}
/// Logical not, or bitwise not.
template <class T, int R>
constexpr Tensor<T, R> bitwise_not(const Tensor<T, R>& a) {
  detail::check_bits<T>();
  if constexpr (std::is_same_v<T, bool>) return !a;
  else if constexpr (std::is_integral_v<T>)
    return detail::apply<op::bitwise_not, T, T, R>(detail::plain, a);
  else return {};
}

// The same for a tensor of integers and a number.
#define XLA_DETAIL_BITS_WITH_NUMBERS(function, op)                                 \
  template <class T, int R>                                                        \
  constexpr Tensor<T, R> function(const Tensor<T, R>& a, detail::number_of<T> b) { \
    return detail::map_bits<op>(a, b);                                             \
  }                                                                                \
  template <class T, int R>                                                        \
  constexpr Tensor<T, R> function(detail::number_of<T> a, const Tensor<T, R>& b) { \
    return detail::map_bits<op>(b, a);                                             \
  }                                                                                \
  static_assert(true)
XLA_DETAIL_BITS_WITH_NUMBERS(bitwise_and, op::bitwise_and);
XLA_DETAIL_BITS_WITH_NUMBERS(bitwise_or, op::bitwise_or);
XLA_DETAIL_BITS_WITH_NUMBERS(bitwise_xor, op::bitwise_xor);
XLA_DETAIL_BITS_WITH_NUMBERS(operator&, op::bitwise_and);
XLA_DETAIL_BITS_WITH_NUMBERS(operator|, op::bitwise_or);
XLA_DETAIL_BITS_WITH_NUMBERS(operator^, op::bitwise_xor);
#undef XLA_DETAIL_BITS_WITH_NUMBERS

/// bitwise_not, bitwise_and, bitwise_or, bitwise_xor.
template <class T, int R>
constexpr Tensor<T, R> operator~(const Tensor<T, R>& a) {
  return bitwise_not(a);
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator&(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return bitwise_and(a, b, detail::unknown_caller);
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator|(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return bitwise_or(a, b, detail::unknown_caller);
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> operator^(const Tensor<T, A>& a,
                                                      const Tensor<T, B>& b) {
  return bitwise_xor(a, b, detail::unknown_caller);
}

XLA_DETAIL_REFUSE_TYPES(operator&);
XLA_DETAIL_REFUSE_TYPES(operator|);
XLA_DETAIL_REFUSE_TYPES(operator^);

}  // namespace xla
