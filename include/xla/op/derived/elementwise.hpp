// SPDX-License-Identifier: Apache-2.0
#pragma once

// square(), reciprocal(), isnan(), addcmul(), lerp() and the like, composed of other ops.

#include <limits>

#include "xla/op/abs.hpp"

namespace xla {

/// x * x of each element.
template <class T, int R>
constexpr Tensor<T, R> square(const Tensor<T, R>& x) {
  return x * x;
}

/// 1 / x of each element.
template <class T, int R>
constexpr Tensor<T, R> reciprocal(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::reciprocal: needs float or double; cast first");
  return 1 / x;
}

/// True where an element is NaN.
template <class T, int R>
constexpr Tensor<bool, R> isnan(const Tensor<T, R>& x) {
  return x != x;
}
/// True where an element is infinity or -infinity.
template <class T, int R>
constexpr Tensor<bool, R> isinf(const Tensor<T, R>& x) {
  if constexpr (std::is_integral_v<T>) return x != x;
  else return abs(x) == std::numeric_limits<T>::infinity();
}
/// True where an element is neither NaN nor infinite.
template <class T, int R>
constexpr Tensor<bool, R> isfinite(const Tensor<T, R>& x) {
  if constexpr (std::is_integral_v<T>) return x == x;
  else return abs(x) < std::numeric_limits<T>::infinity();
}

/// x + value a b, element by element, broadcast. Sizes that do not broadcast are a shape_error.
template <class T, int R, int A, int B>
constexpr detail::broadcast_tensor<T, R, A, B> addcmul(const Tensor<T, R>& x, const Tensor<T, A>& a,
                                                       const Tensor<T, B>& b,
                                                       detail::number_of<T> value = 1,
                                                       caller loc = here()) {
  detail::check_broadcast({"addcmul", loc}, x, a, b);
  const auto product = detail::map_binary<op::mul, T>(a, b, loc);
  if (value.is(1)) return detail::map_binary<op::add, T>(x, product, loc);
  return detail::map_binary<op::add, T>(x, product * value, loc);
}
/// x + value a / b, element by element, broadcast. Sizes that do not broadcast are a shape_error.
template <class T, int R, int A, int B>
constexpr detail::broadcast_tensor<T, R, A, B> addcdiv(const Tensor<T, R>& x, const Tensor<T, A>& a,
                                                       const Tensor<T, B>& b,
                                                       detail::number_of<T> value = 1,
                                                       caller loc = here()) {
  static_assert(floating_type<T>, "xla::addcdiv: needs float or double; cast first");
  detail::check_broadcast({"addcdiv", loc}, x, a, b);
  const auto quotient = detail::map_binary<op::div, T>(a, b, loc);
  if (value.is(1)) return detail::map_binary<op::add, T>(x, quotient, loc);
  return detail::map_binary<op::add, T>(x, quotient * value, loc);
}

/// start + weight (end - start), element by element, broadcast; from the nearer of the two ends, so
/// that a weight of 1 gives end exactly. The weight may be a number. Sizes that do not broadcast
/// are a shape_error.
template <class T, int A, int B, int W>
constexpr detail::broadcast_tensor<T, A, B, W> lerp(const Tensor<T, A>& start,
                                                    const Tensor<T, B>& end,
                                                    const Tensor<T, W>& weight,
                                                    caller loc = here()) {
  static_assert(floating_type<T>, "xla::lerp: needs float or double; cast first");
  detail::check_broadcast({"lerp", loc}, start, end, weight);
  const auto way = detail::map_binary<op::sub, T>(end, start, loc);
  const auto part = detail::map_binary<op::mul, T>(way, weight, loc);
  return where(abs(weight) < 0.5, start + part, end - way * (1 - weight));
}
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> lerp(const Tensor<T, A>& start, const Tensor<T, B>& end,
                                                 detail::number_of<T> weight, caller loc = here()) {
  return lerp(start, end, weight.tensor(), loc);
}

}  // namespace xla
