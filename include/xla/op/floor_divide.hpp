// SPDX-License-Identifier: Apache-2.0
#pragma once

// floor_divide(), and div() with a rounding mode.

#include <cstdint>

#include "xla/op/arithmetic.hpp"
#include "xla/op/rounding.hpp"

namespace xla::op {

/// Quotients rounded down. The remainder says whether truncation is too high by 1; for
/// floating-point numbers it makes the quotient exact: 1 // 0.1 is 9, though 1 / 0.1 rounds to 10.
struct floor_divide : map {
  static constexpr auto name = "floor_divide";
  static constexpr auto kernel(auto a, auto b) {
    const auto zero = a.like(0), rest = a.fmod(b), quotient = a / b, whole = (a - rest) / b;
    const auto above = (rest < zero && b > zero) || (rest > zero && b < zero);
    const auto floor = above.select(whole - a.like(1), whole).round();
    // A floating-point number divided by zero is infinite or NaN; a zero result has the quotient's
    // sign.
    const auto signed_floor = (floor == zero).select(quotient * zero, floor);
    return (b == zero).select(quotient, signed_floor);
  }
  static constexpr void gradient(auto& g) {
    if (g.needs(0)) g.to(0, zeros_like(g.in(0)));
    if (g.needs(1)) g.to(1, zeros_like(g.in(1)));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::floor_divide, numbers);

namespace xla {

/// The rounding mode of div(): down, or towards zero.
enum class Rounding : std::uint8_t { floor, trunc };

namespace detail {

/// A rounded quotient; for bfloat16 it is rounded once.
template <class T, int A, int B>
constexpr broadcast_tensor<T, A, B> whole_quotient(const Tensor<computed<T>, A>& a,
                                                   const Tensor<computed<T>, B>& b,
                                                   Rounding rounding, caller loc = unknown_caller) {
  static_assert(!std::is_same_v<T, bool>,
                "xla: tensors of bool have no rounded quotient; write xla::cast<std::int64_t>(x)");
  using C = computed<T>;
  if constexpr (std::is_same_v<T, bool>) return {};
  else if (rounding == Rounding::floor)
    return narrowed<T>(map_binary<op::floor_divide, C>(a, b, loc));
  else return narrowed<T>(trunc(map_binary<op::div, C>(a, b, loc)));
}

}  // namespace detail

/// Quotients rounded down or towards zero, in the operands' type. Integers divided by zero give 0;
/// the gradient is 0. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> div(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                Rounding rounding, caller loc = here()) {
  return detail::whole_quotient<T>(detail::widened(a), detail::widened(b), rounding, loc);
}
template <class T, int R>
constexpr Tensor<T, R> div(const Tensor<T, R>& a, detail::number_of<T> b, Rounding rounding) {
  return detail::whole_quotient<T>(detail::widened(a), b.operand(), rounding);
}
template <class T, int R>
constexpr Tensor<T, R> div(detail::number_of<T> a, const Tensor<T, R>& b, Rounding rounding) {
  return detail::whole_quotient<T>(a.operand(), detail::widened(b), rounding);
}

/// div(a, b, Rounding::floor): Python's //.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> floor_divide(const Tensor<T, A>& a,
                                                         const Tensor<T, B>& b,
                                                         caller loc = here()) {
  return div(a, b, Rounding::floor, loc);
}
template <class T, int R>
constexpr Tensor<T, R> floor_divide(const Tensor<T, R>& a, detail::number_of<T> b) {
  return div(a, b, Rounding::floor);
}
template <class T, int R>
constexpr Tensor<T, R> floor_divide(detail::number_of<T> a, const Tensor<T, R>& b) {
  return div(a, b, Rounding::floor);
}

/// The true quotient, a / b.
template <class T, int A, class U, int B>
constexpr auto div(const Tensor<T, A>& a, const Tensor<U, B>& b) {
  return a / b;
}
template <class T, int R>
constexpr auto div(const Tensor<T, R>& a, detail::number_of<detail::quotient_type<T>> b) {
  return a / b;
}
template <class T, int R>
constexpr auto div(detail::number_of<detail::quotient_type<T>> a, const Tensor<T, R>& b) {
  return a / b;
}

template <class T, int A, detail::unlike<T> U, int B>
constexpr auto div(const Tensor<T, A>&, const Tensor<U, B>&, Rounding) {
  return detail::refuse_types<T, U>();
}
template <class T, int A, detail::unlike<T> U, int B>
constexpr auto floor_divide(const Tensor<T, A>&, const Tensor<U, B>&) {
  return detail::refuse_types<T, U>();
}

}  // namespace xla
