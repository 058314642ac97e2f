// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets a program define its own elementwise op in a few lines; it is fused like the library's. An
// op with a kernel over whole tensors is written like those in op/ instead.

#include <concepts>

#include "xla/op/op.hpp"

/// Registers a custom elementwise op for fused regions; below its definition, outside of
/// namespaces. Two ops of one name do not compile: begin yours with a prefix of your own.
#define XLA_ELEMENTWISE_OP(type) XLA_DETAIL_OP_ID(type)

namespace xla {
namespace detail {

template <class Op>
concept known_op = requires { typename op_by_id<id_of<Op>>::op; };

template <class Op>
concept elementwise_op = std::derived_from<Op, op::map> && requires {
  { Op::name } -> std::convertible_to<std::string_view>;
};

}  // namespace detail

/// A custom elementwise op, on one to three tensors of one element type, which broadcast. It works
/// in every mode, and is fused like the library's. Its definition has the same form:
///
///   struct swish : xla::op::map {
///     static constexpr auto name = "my_swish";
///     static constexpr auto kernel(auto x) { return x / (x.like(1) + (-x).exp()); }
///     static constexpr void gradient(auto& g) {
///       const auto s = xla::sigmoid(g.in(0));
///       g.to(0, g.grad() * (s + g.out() * (1 - s)));
///     }
///   };
///   XLA_ELEMENTWISE_OP(swish);
///
/// kernel() is one expression for single elements and for packets of them: + - * / and comparisons,
/// (a < b).select(a, b) and like(number). Functions are members: abs, sqrt, rsqrt, floor, ceil,
/// round, trunc, max, min, exp, expm1, log, log1p, sin, cos, tanh, erf, erfc, lgamma, digamma, pow,
/// atan, atan2, zeta, fmod. gradient() is written with tensors: g.in(i) and g.out() are inputs and
/// result, g.grad() is the gradient of the result. g.to(i, …) sets the gradient of input i, summed
/// over the axes along which it was broadcast; g.needs(i) says whether it is needed. Without
/// gradient() no gradient flows. `costly = true` says that saving the result is better than
/// computing it twice.
template <class Op, class T, int... R>
constexpr detail::broadcast_tensor<T, R...> elementwise(const Tensor<T, R>&... x) {
  using Result = detail::broadcast_tensor<T, R...>;
  static_assert(detail::elementwise_op<Op>,
                "xla::elementwise: the op derives from xla::op::map and has a static name");
  static_assert(detail::known_op<Op>,
                "xla::elementwise: write XLA_ELEMENTWISE_OP(type); below the op's definition, "
                "outside of namespaces");
  using C = detail::computed<T>;
  constexpr bool takes = detail::kernel_of<Op, C, C>::arity == sizeof...(R);
  static_assert(takes, "xla::elementwise: the op's kernel takes another number of inputs");
  if constexpr (detail::known_op<Op> && takes)
    return detail::apply<Op, T, T, Result::rank>(detail::plain, x...);
  else return Result();
}

}  // namespace xla
