// SPDX-License-Identifier: Apache-2.0
#pragma once

// cummax() and cummin(), with their indices.

#include <utility>

#include "xla/op/gather.hpp"

namespace xla::op {

/// The base of ops that find the last best element along an axis up to each one.
struct best_so_far {
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    detail::axis_number axis{};
    XLA_ATTRIBUTES(axis)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
};
struct cummax_index : best_so_far {
  static constexpr auto name = "cummax_index";
  static constexpr std::string_view better = "GE";
  static constexpr bool as_good(auto a, auto b) { return a >= b; }
};
struct cummin_index : best_so_far {
  static constexpr auto name = "cummin_index";
  static constexpr std::string_view better = "LE";
  static constexpr bool as_good(auto a, auto b) { return a <= b; }
};

}  // namespace xla::op

XLA_OP(xla::op::cummax_index, positions);
XLA_OP(xla::op::cummin_index, positions);

namespace xla {
namespace detail {
template <class Op, class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> best_so_far(const Tensor<T, R>& x,
                                                                       int axis,
                                                                       const call_site& site) {
  static_assert(R >= 1, "xla::cummax and cummin: need at least one axis");
  const int at = axis_of(x, R, axis, site);
  const auto index = apply_at<Op, std::int64_t, T, R>(site.at, with<Op>({at}), x);
  return {gather_along(x, at, index), index};
}
}  // namespace detail

/// The largest of the elements along an axis up to each one, and their positions: {values,
/// indices}. Of equal ones the last counts, and it has the gradient; NaN is the largest. An axis
/// that does not exist is a shape_error.
template <class T, int R>
constexpr auto cummax(const Tensor<T, R>& x, int axis, caller loc = here()) {
  return detail::best_so_far<op::cummax_index>(x, axis, {"cummax", loc});
}
/// The smallest elements in the same way; NaN is the smallest.
template <class T, int R>
constexpr auto cummin(const Tensor<T, R>& x, int axis, caller loc = here()) {
  return detail::best_so_far<op::cummin_index>(x, axis, {"cummin", loc});
}

}  // namespace xla
