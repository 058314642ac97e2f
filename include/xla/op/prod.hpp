// SPDX-License-Identifier: Apache-2.0
#pragma once

// prod(): a reduction, whose gradient is right where elements are 0.

#include "xla/op/scan.hpp"

namespace xla::op {

/// The product over axes.
struct prod : reduction {
  static constexpr auto name = "prod";
  template <class T>
  static constexpr T identity = T{1};
  static constexpr auto combine(auto a, auto b) { return a * b; }
  // An element's factor is the product of the others, axis by axis: of those before and after it,
  // and of the other lines' products. Nothing is divided, so zeros cause no error.
  static constexpr void gradient(auto& g) {
    auto factor = g.grad(), lines = g.in(0);
    for (int i = 0; i < lines.dims().rank; ++i) {
      if (!g.attributes().axes.has(i)) continue;
      const auto others =
          detail::scan_by<cumprod>(lines, {.axis = i, .exclusive = true}) *
          detail::scan_by<cumprod>(lines, {.axis = i, .backward = true, .exclusive = true});
      factor = factor * others;
      lines = detail::reduce<prod>(lines, detail::axis_set::one(i));
    }
    g.to(0, factor);
  }
};

}  // namespace xla::op

XLA_OP(xla::op::prod, numbers);

namespace xla {

/// The product of all elements, or over the given axes, which xla::keepdim keeps with size 1; 1 for
/// no elements. For integers and bool it is computed in std::int64_t, and wraps around. An axis
/// that does not exist or is repeated is a shape_error.
template <class T, int R>
constexpr Tensor<detail::total_type<T>, 0> prod(const Tensor<T, R>& x) {
  return detail::reduce_all<op::prod>(detail::total_operand(x));
}
template <class T, int R, std::size_t N>
constexpr auto prod(const Tensor<T, R>& x, const int (&axes)[N], caller loc = here()) {
  return detail::reduce_axes<op::prod>(detail::total_operand(x), axes, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<detail::total_type<T>, R> prod(const Tensor<T, R>& x, const int (&axes)[N],
                                                keepdim_t, caller loc = here()) {
  return detail::reduce<op::prod>(detail::total_operand(x),
                                  detail::axes_of(x, R, axes, {"prod", loc}));
}

}  // namespace xla
