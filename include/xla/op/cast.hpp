// SPDX-License-Identifier: Apache-2.0
#pragma once

// cast(): another element type. Passes and autocast apply it, too.

#include "xla/op/op.hpp"

namespace xla::op {

struct cast : map {
  static constexpr auto name = "cast";
  static constexpr bool converts = true;
  template <class Out, class In>
  static constexpr void gradient(detail::gradient_of<Out, In>& g) {
    g.to(0, detail::apply<cast, In, Out, dynamic_rank>(detail::plain, g.grad()));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::cast, conversions);

namespace xla::detail {

/// The type that apply computes with in place of bfloat16. An argument without an element type is
/// an index.
constexpr const handle& widened(const handle& x) { return x; }
template <class T, int R>
constexpr Tensor<T, R> widened(const Tensor<T, R>& x) {
  return x;
}
template <int R>
constexpr Tensor<float, R> widened(const Tensor<bfloat16, R>& x) {
  return apply<op::cast, float, bfloat16, R>(plain, x);
}
template <class Out, class T, int R>
constexpr Tensor<Out, R> narrowed(const Tensor<T, R>& x) {
  if constexpr (std::is_same_v<Out, T>) return x;
  else return apply<op::cast, Out, T, R>(plain, x);
}

}  // namespace xla::detail

namespace xla {

/// Each element as another type, as static_cast does; to bool: not zero.
template <element To, class T, int R>
constexpr Tensor<To, R> cast(const Tensor<T, R>& x) {
  if constexpr (std::is_same_v<To, T>) return x;
  else return detail::apply<op::cast, To, T, R>(detail::plain, x);
}

}  // namespace xla
