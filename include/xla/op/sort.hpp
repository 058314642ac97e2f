// SPDX-License-Identifier: Apache-2.0
#pragma once

// argsort(), sort() and topk().

#include <utility>

#include "xla/op/gather.hpp"

namespace xla::op {

/// The positions of the first `count` elements in sorted order along an axis. Of equal ones the
/// first comes first; NaN is larger than every number.
struct argsort {
  static constexpr auto name = "argsort";
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    detail::axis_number axis{};
    bool descending = false;
    detail::size_value count{};
    XLA_ATTRIBUTES(axis, descending, count)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    const auto a = r.attributes<argsort>();
    const detail::extent count = a.count;
    shape s = r.in[0];
    detail::extent& n = s[a.axis];
    // Whether count <= n is unknown while a step is captured; a check that n / count is not 0 can
    // be recorded.
    if (count != n && count > 0)
      r.sizes.nonzero(r.sizes.divide(n, count),
                      "topk: k is larger than the number of elements along the axis");
    n = count;
    return s;
  }
};

}  // namespace xla::op

XLA_OP(xla::op::argsort, positions);

namespace xla {
namespace detail {
template <class T, int R>
constexpr Tensor<std::int64_t, R> first_in_order(const Tensor<T, R>& x, int axis, bool descending,
                                                 extent count, caller loc) {
  return apply_at<op::argsort, std::int64_t, T, R>(loc,
                                                   with<op::argsort>({axis, descending, count}), x);
}
}  // namespace detail

/// The indices that sort x along an axis, stable; NaN is the largest. An axis that does not exist
/// is a shape_error.
template <class T, int R>
constexpr Tensor<std::int64_t, R> argsort(const Tensor<T, R>& x, int axis = -1,
                                          bool descending = false, caller loc = here()) {
  static_assert(R >= 1, "xla::argsort: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"argsort", loc});
  return detail::first_in_order(x, at, descending, x.dims()[at], loc);
}

/// x sorted along an axis, and the original position of each element: {values, indices}. Stable;
/// NaN is the largest. Gradients flow through the values. An axis that does not exist is a
/// shape_error.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> sort(const Tensor<T, R>& x,
                                                                int axis = -1,
                                                                bool descending = false,
                                                                caller loc = here()) {
  static_assert(R >= 1, "xla::sort: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"sort", loc});
  const auto index = detail::first_in_order(x, at, descending, x.dims()[at], loc);
  return {detail::gather_along(x, at, index), index};
}

/// The k largest (or smallest) elements along an axis in order, and their positions: {values,
/// indices}. Of equal ones the first are taken. Gradients flow through the values. An axis that
/// does not exist, or a k beyond its size, is a shape_error.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> topk(const Tensor<T, R>& x,
                                                                std::int64_t k, int axis = -1,
                                                                bool largest = true,
                                                                caller loc = here()) {
  static_assert(R >= 1, "xla::topk: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"topk", loc});
  if (k < 0) detail::size_scope{x.table(), {"topk", loc}}.fail("k is negative");
  const auto index = detail::first_in_order(x, at, largest, k < 0 ? 0 : k, loc);
  return {detail::gather_along(x, at, index), index};
}

}  // namespace xla
