// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/reduce.hpp"

namespace xla::op {

/// The product over axes. Its gradient is right where elements are 0, too; the second one only
/// where at most one is.
struct prod : reduction {
  static constexpr auto name = "prod";
  template <class T>
  static constexpr T identity = T{1};
  static constexpr auto combine(auto a, auto b) { return a * b; }
  static constexpr auto fold(auto lanes) { return lanes.prod(); }
  // An element's factor is the product of the others: 0 when one of them is.
  static constexpr void gradient(auto& g) {
    using T = typename decltype(g.grad())::value_type;
    const auto zero = g.in(0) == 0;
    const auto factors = xla::where(zero, 1, g.in(0));
    const auto zeros = xla::cast<T>(zero);
    const auto other_zeros = detail::reduce<sum>(zeros, g.attr()) - zeros;
    const auto others = detail::reduce<prod>(factors, g.attr()) / factors;
    g.to(0, xla::where(other_zeros == 0, g.grad() * others, 0));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::prod);

namespace xla {

/// The product of all elements, over the given axes, or over them kept with size 1; of nothing 1.
template <class T, int R>
constexpr Tensor<T, 0> prod(const Tensor<T, R>& x) {
  return detail::reduce_all<op::prod>(x);
}
template <class T, int R, std::size_t N>
constexpr auto prod(const Tensor<T, R>& x, const int (&axes)[N], caller who = here()) {
  return detail::reduce_axes<op::prod>(x, axes, who);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> prod(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                            caller who = here()) {
  return detail::reduce<op::prod>(x, detail::axes_of(x, R, axes, {"prod", who}));
}

}  // namespace xla
