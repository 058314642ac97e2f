// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/reduce.hpp"

namespace xla::op {

/// The index of the first largest element along the axis attr, which stays with size 1.
struct argmax {
  static constexpr auto name = "argmax";
  static constexpr op_kind kind = op_kind::library;
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    r.sizes.nonzero(s[static_cast<int>(r.op.attr)], "argmax: the axis has no elements");
    s[static_cast<int>(r.op.attr)] = 1;
    return s;
  }
};

}  // namespace xla::op

namespace xla {

/// The index of the largest element along an axis (the first of equals; NaN counts as largest).
template <class T, int R>
constexpr Tensor<std::int64_t, R - 1> argmax(const Tensor<T, R>& x, int axis = -1) {
  static_assert(R >= 1, "xla::argmax: needs at least one axis");
  detail::node n;
  const int at = axis < 0 ? axis + R : axis;
  if (at < 0 || at >= R) detail::size_scope{x.table(), "argmax"}.fail("no such axis");
  else n.attr = at;
  return detail::drop_axes<R - 1, std::int64_t>(detail::apply<op::argmax, std::int64_t, T, R>(n, x),
                                                std::int64_t{1} << n.attr);
}

}  // namespace xla
