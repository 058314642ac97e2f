// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "xla/op/gather.hpp"

namespace xla::op {

/// Where the first `size` elements in order stand along an axis. attr: the axis, + 8 for the
/// largest first. Of equals the first comes first; NaN is larger than every number.
struct argsort {
  static constexpr auto name = "argsort";
  static constexpr op_kind kind = op_kind::library;
  static constexpr int axis(std::int64_t attr) { return static_cast<int>(attr & 7); }
  static constexpr bool descending(std::int64_t attr) { return attr & 8; }
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    detail::extent& n = s[axis(r.op.attr)];
    // Whether size <= n is not known while a step is captured; that n / size is not 0 can be asked.
    if (r.op.size != n && r.op.size > 0)
      r.sizes.nonzero(r.sizes.divide(n, r.op.size),
                      "topk: k is larger than the number of elements along the axis");
    n = r.op.size;
    return s;
  }
};

}  // namespace xla::op

XLA_OP(xla::op::argsort, places);

namespace xla {
namespace detail {
template <class T, int R>
constexpr Tensor<std::int64_t, R> first_in_order(const Tensor<T, R>& x, int axis, bool descending,
                                                 extent size, caller who) {
  node n;
  n.attr = axis | (descending ? 8 : 0);
  n.size = size;
  return apply_at<op::argsort, std::int64_t, T, R>(who, n, x);
}
}  // namespace detail

/// The indices that sort x along an axis, stable; NaN is the largest. An axis that is not there is
/// a shape_error.
template <class T, int R>
constexpr Tensor<std::int64_t, R> argsort(const Tensor<T, R>& x, int axis = -1,
                                          bool descending = false, caller who = here()) {
  static_assert(R >= 1, "xla::argsort: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"argsort", who});
  return detail::first_in_order(x, at, descending, x.dims()[at], who);
}

/// x sorted along an axis, and where each element was: {values, indices}. Stable; NaN is the
/// largest. Gradients flow through the values. An axis that is not there is a shape_error.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> sort(const Tensor<T, R>& x,
                                                                int axis = -1,
                                                                bool descending = false,
                                                                caller who = here()) {
  static_assert(R >= 1, "xla::sort: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"sort", who});
  const auto index = detail::first_in_order(x, at, descending, x.dims()[at], who);
  return {detail::gather_along(x, at, index), index};
}

/// The k largest (or smallest) elements along an axis in order, and where they are: {values,
/// indices}. Of equals the first are taken. Gradients flow through the values. An axis that is not
/// there, or more than its size, is a shape_error.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> topk(const Tensor<T, R>& x,
                                                                std::int64_t k, int axis = -1,
                                                                bool largest = true,
                                                                caller who = here()) {
  static_assert(R >= 1, "xla::topk: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"topk", who});
  if (k < 0) detail::size_scope{x.table(), {"topk", who}}.fail("k is negative");
  const auto index = detail::first_in_order(x, at, largest, k < 0 ? 0 : k, who);
  return {detail::gather_along(x, at, index), index};
}

}  // namespace xla
