// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/op.hpp"

namespace xla::op {

/// Axes in another order: axis i of the result is axis (attr >> 4 i) & 15 of the input.
struct permute {
  static constexpr auto name = "permute";
  static constexpr op_kind kind = op_kind::library;
  static constexpr int source(std::int64_t attr, int axis) { return (attr >> (4 * axis)) & 15; }
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    for (int i = 0; i < s.rank; ++i) s[i] = r.in[0][source(r.op.attr, i)];
    return s;
  }
  static constexpr void gradient(auto& g) {
    detail::node n;
    for (int i = 0; i < g.in(0).dim(); ++i)
      n.attr |= static_cast<std::int64_t>(i) << (4 * source(g.attr(), i));
    g.to(0, permute_by(g.grad(), n));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::permute, all);

namespace xla {
namespace detail {
template <class T, int R>
constexpr Tensor<T, R> permute_by(const Tensor<T, R>& x, const node& n) {
  return apply<op::permute, T, T, R>(n, x);
}
}  // namespace detail

/// The axes in the given order. An axis that is not there or comes twice is a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> permute(const Tensor<T, R>& x, const int (&order)[N], caller who = here()) {
  static_assert(static_cast<int>(N) == R, "xla::permute: give one axis for every axis of x");
  detail::node n;
  int seen = 0;
  for (int i = 0; i < R; ++i) {
    const int axis = order[i] < 0 ? order[i] + R : order[i];
    if (axis < 0 || axis >= R || (seen >> axis & 1)) {
      detail::size_scope{x.table(), {"permute", who}}.fail("every axis must be named exactly once");
      return x;
    }
    seen |= 1 << axis;
    n.attr |= static_cast<std::int64_t>(axis) << (4 * i);
  }
  return detail::permute_by(x, n);
}

/// Two axes exchanged; the last two unless told otherwise. An axis that is not there is a
/// shape_error.
template <class T, int R>
constexpr Tensor<T, R> transpose(const Tensor<T, R>& x, int a = -2, int b = -1,
                                 caller who = here()) {
  static_assert(R >= 2, "xla::transpose: needs a tensor with two axes or more");
  detail::node n;
  a = a < 0 ? a + R : a;
  b = b < 0 ? b + R : b;
  if (a < 0 || a >= R || b < 0 || b >= R) {
    detail::size_scope{x.table(), {"transpose", who}}.fail("no such axis");
    return x;
  }
  for (int i = 0; i < R; ++i)
    n.attr |= static_cast<std::int64_t>(i == a ? b : i == b ? a : i) << (4 * i);
  return detail::permute_by(x, n);
}
template <class T, int R>
constexpr Tensor<T, R> swapaxes(const Tensor<T, R>& x, int a, int b, caller who = here()) {
  return transpose(x, a, b, who);
}

/// Axis from at place to, the others in their order. An axis that is not there is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> movedim(const Tensor<T, R>& x, int from, int to, caller who = here()) {
  static_assert(R != 0, "xla::movedim: a tensor without axes has none to move");
  from = from < 0 ? from + R : from;
  to = to < 0 ? to + R : to;
  if (from < 0 || from >= R || to < 0 || to >= R) {
    detail::size_scope{x.table(), {"movedim", who}}.fail("no such axis");
    return x;
  }
  int order[R] = {};
  for (int i = 0, next = 0; i < R; ++i) {
    if (next == from) ++next;
    order[i] = i == to ? from : next++;
  }
  return permute(x, order, who);
}

}  // namespace xla
