// SPDX-License-Identifier: Apache-2.0
#pragma once

// backward() and grad() from several values at once, as in torch.autograd. functions.hpp includes
// it: most programs take gradients of one loss alone (backward.hpp).

#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/transform/backward.hpp"

namespace xla {
namespace detail {

template <class... Y, class... G>
constexpr auto sum_of_all_products(const std::tuple<Y...>& values,
                                   const std::tuple<G...>& gradients, call_site site) {
  static_assert(sizeof...(Y) > 0 && sizeof...(Y) == sizeof...(G),
                "xla: one gradient for each value, of its element type and shape");
  const auto product = [&](const auto& y, const auto& gradient) {
    using Value = std::remove_cvref_t<decltype(y)>;
    return sum_of_products<typename Value::value_type, Value::rank>(y, gradient, site);
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return (product(std::get<I>(values), std::get<I>(gradients)) + ...);
  }(std::index_sequence_for<Y...>());
}

}  // namespace detail

/// backward() from several values at once, like torch.autograd.backward. Each value's elements
/// receive the gradient at the same index of `gradients`, of its element type and shape. Another
/// shape is a shape_error.
template <class... Y, class... G>
constexpr void backward(const std::tuple<Y...>& values, const std::tuple<G...>& gradients,
                        caller loc = here()) {
  const auto cut = std::apply([](const auto&... g) { return std::tuple(g.detach()...); }, gradients);
  detail::sum_of_all_products(values, cut, {"backward", loc}).backward(loc);
}

/// The gradients of several values with respect to inputs (a tensor, a tuple of them, or a module),
/// like torch.autograd.grad with grad_outputs: the product of `gradients`, one for each value and
/// of its shape, with the values' Jacobian.
template <class... Y, class X, class... G>
constexpr auto grad(const std::tuple<Y...>& values, X&& inputs, const std::tuple<G...>& gradients,
                    GradOptions options = {}, caller loc = here()) {
  const auto total = detail::sum_of_all_products(values, gradients, {"grad", loc});
  return grad(total, std::forward<X>(inputs), options);
}
/// The same for one value.
template <class T, int R, class X>
constexpr auto grad(const Tensor<T, R>& value, X&& inputs, const Tensor<T, R>& gradient,
                    GradOptions options = {}, caller loc = here()) {
  const auto total = detail::sum_of_products<T, R>(value, gradient, {"grad", loc});
  return grad(total, std::forward<X>(inputs), options);
}

}  // namespace xla
