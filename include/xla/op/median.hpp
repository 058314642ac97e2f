// SPDX-License-Identifier: Apache-2.0
#pragma once

// median(), of all elements or along an axis.

#include <utility>

#include "xla/op/argmax.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/logical.hpp"

namespace xla::op {

/// The position of the median along an axis, which stays with size 1: the lower one of an even
/// number of elements, of equal ones the first in order; the first NaN if there is one.
struct median_index : arg_best {
  static constexpr auto name = "median_index";
  static constexpr shape shape_of(const shape_rule& r) {
    return find(r, "median: there are no elements");
  }
};

/// The element at median_index, like gather; all elements that equal it share the gradient.
struct median : indexed {
  static constexpr auto name = "median";
  static constexpr shape shape_of(const shape_rule& r) { return index_shape(r); }
  static constexpr void gradient(auto& g) {
    using T = typename decltype(g.grad())::value_type;
    const auto x = g.in(0), y = g.out();
    const auto hit = xla::cast<T>(x == y || (x != x && y != y));
    g.to(0, g.grad() * hit / detail::reduce<sum>(hit, detail::axis_set::one(g.attributes().axis)));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::median_index, positions);
XLA_OP(xla::op::median, numbers);

namespace xla {
namespace detail {
/// The medians along an axis, and their positions; the axis stays. An axis that does not exist, or
/// has size 0, is a shape_error.
template <class T, int R>
constexpr Tensor<std::int64_t, R> median_index(const Tensor<T, R>& x, int axis) {
  static_assert(!std::is_same_v<T, bool>, "xla::median: needs numbers, not bool; cast first");
  return apply<op::median_index, std::int64_t, T, R>(with<op::median_index>({axis}), x);
}
}  // namespace detail

/// The median of all elements; the lower one of an even number, as in PyTorch. NaN if one is. Equal
/// elements share the gradient. A tensor without elements is refused.
template <class T, int R>
constexpr Tensor<T, 0> median(const Tensor<T, R>& x) {
  if constexpr (R == 0) {
    return x;
  } else {
    const Tensor<T, 1> all = flatten(x);
    const auto index = detail::median_index(all, 0);
    return detail::drop_axes<0, T>(
        detail::apply<op::median, T, T, 1>(detail::with<op::median>({0}), all, index),
        detail::axis_set::one(0));
  }
}
/// The medians along an axis, and their positions: {values, indices}. Of equal ones the first in
/// order counts, and it has the gradient; of NaNs the first. An axis that does not exist, or has
/// size 0, is a shape_error.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> median(const Tensor<T, R>& x, int axis,
                                                                  keepdim_t, caller loc = here()) {
  static_assert(R >= 1, "xla::median: needs an axis; median(x) is of all elements");
  const int at = detail::axis_of(x, R, axis, {"median", loc});
  const auto index = detail::median_index(x, at);
  return {detail::gather_along(x, at, index), index};
}
template <class T, int R>
constexpr std::pair<Tensor<T, R - 1>, Tensor<std::int64_t, R - 1>> median(const Tensor<T, R>& x,
                                                                          int axis,
                                                                          caller loc = here()) {
  const auto [values, index] = median(x, axis, keepdim, loc);
  const auto dropped = detail::axis_set::one(detail::axis_of(x, R, axis, "median"));
  return {detail::drop_axes<R - 1, T>(values, dropped),
          detail::drop_axes<R - 1, std::int64_t>(index, dropped)};
}

}  // namespace xla
