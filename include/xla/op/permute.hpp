// SPDX-License-Identifier: Apache-2.0
#pragma once

// permute(), transpose(), movedim(): axes in another order. Plans avoid copies where they can.

#include "xla/op/op.hpp"

namespace xla::op {

/// Axes in another order: axis i of the result is axis order[i] of the input.
struct permute {
  static constexpr auto name = "permute";
  static constexpr op_kind kind = op_kind::library;
  static constexpr auto accepts = detail::axes_rule::permuted;
  struct attributes {
    detail::axis_order order{};
    XLA_ATTRIBUTES(order)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    const detail::axis_order order = r.attributes<permute>().order;
    shape s = r.in[0];
    for (int i = 0; i < s.rank; ++i) s[i] = r.in[0][order[i]];
    return s;
  }
  static constexpr void gradient(auto& g) {
    g.to(0, permute_by(g.grad(), g.attributes().order.inverse()));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::permute, all);

namespace xla {
namespace detail {
template <class T, int R>
constexpr Tensor<T, R> permute_by(const Tensor<T, R>& x, axis_order order) {
  return apply<op::permute, T, T, R>(with<op::permute>({.order = order}), x);
}
}  // namespace detail

/// The axes in the given order. An axis that does not exist or is repeated is a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> permute(const Tensor<T, R>& x, const int (&order)[N], caller loc = here()) {
  static_assert(static_cast<int>(N) == R, "xla::permute: give one axis for every axis of x");
  detail::axis_order all;
  detail::axis_set seen;
  for (int i = 0; i < R; ++i) {
    const int axis = order[i] < 0 ? order[i] + R : order[i];
    if (axis < 0 || axis >= R || seen.has(axis)) {
      detail::size_scope{x.table(), {"permute", loc}}.fail("every axis must be named exactly once");
      return x;
    }
    seen.add(axis);
    all.push(axis);
  }
  return detail::permute_by(x, all);
}

/// Exchanges two axes, by default the last two. An axis that does not exist is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> transpose(const Tensor<T, R>& x, int a = -2, int b = -1,
                                 caller loc = here()) {
  static_assert(R >= 2, "xla::transpose: needs a tensor with two axes or more");
  a = a < 0 ? a + R : a;
  b = b < 0 ? b + R : b;
  if (a < 0 || a >= R || b < 0 || b >= R) {
    detail::size_scope{x.table(), {"transpose", loc}}.fail("no such axis");
    return x;
  }
  detail::axis_order order;
  for (int i = 0; i < R; ++i) order.push(i == a ? b : i == b ? a : i);
  return detail::permute_by(x, order);
}
template <class T, int R>
constexpr Tensor<T, R> swapaxes(const Tensor<T, R>& x, int a, int b, caller loc = here()) {
  return transpose(x, a, b, loc);
}

/// Moves an axis to a position, with the others in order. An axis that does not exist is a
/// shape_error.
template <class T, int R>
constexpr Tensor<T, R> movedim(const Tensor<T, R>& x, int from, int to, caller loc = here()) {
  static_assert(R != 0, "xla::movedim: a tensor without axes has none to move");
  from = from < 0 ? from + R : from;
  to = to < 0 ? to + R : to;
  if (from < 0 || from >= R || to < 0 || to >= R) {
    detail::size_scope{x.table(), {"movedim", loc}}.fail("no such axis");
    return x;
  }
  int order[R] = {};
  for (int i = 0, next = 0; i < R; ++i) {
    if (next == from) ++next;
    order[i] = i == to ? from : next++;
  }
  return permute(x, order, loc);
}

}  // namespace xla
