// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/gather.hpp"

namespace xla::op {

/// x with a row added at each index along the axis attr, in the order of the source.
struct index_add {
  static constexpr auto name = "index_add";
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool updates = true;
  static constexpr shape shape_of(const shape_rule& r) {
    const int axis = static_cast<int>(r.op.attr);
    for (int i = 0; i < r.in[0].rank; ++i) {
      detail::extent e = i == axis ? r.in[1][0] : r.in[0][i];
      if (!r.sizes.equal(e, r.in[2][i]))
        r.sizes.fail(detail::text("a source of shape ")
                     << r.in[2] << " does not fit an index of shape " << r.in[1]
                     << " into a tensor of shape " << r.in[0] << " along axis " << axis);
    }
    return r.in[0];
  }
  static constexpr void gradient(auto& g) {
    if (g.wants(0)) g.to(0, g.grad());
    if (g.wants(2)) g.to(2, select_along(g.grad(), g.attr(), g.template in<std::int64_t>(1)));
  }
};

/// The rows that an index of one axis names along the axis attr.
struct index_select {
  static constexpr auto name = "index_select";
  static constexpr op_kind kind = op_kind::library;
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    s[static_cast<int>(r.op.attr)] = r.in[1][0];
    return s;
  }
  static constexpr void gradient(auto& g) {
    const auto none = detail::zeros_of(g.grad(), g.in(0).dims());
    g.to(0, detail::put_along<index_add>(none, g.attr(), g.template in<std::int64_t>(1), g.grad()));
  }
};

}  // namespace xla::op

namespace xla {
namespace detail {
/// index_select with an index that is known to be in range.
template <class T, int R>
constexpr Tensor<T, R> select_along(const Tensor<T, R>& x, std::int64_t axis, const handle& index) {
  node n;
  n.attr = axis;
  return apply<op::index_select, T, T, R>(n, x, index);
}
}  // namespace detail

/// The slices of x along an axis that an index (n) names, in its order. An index outside [0, size)
/// is an index_error. The gradient adds up the slices that were used.
template <class T, int R>
constexpr Tensor<T, R> index_select(const Tensor<T, R>& x, int axis,
                                    const Tensor<std::int64_t, 1>& index) {
  static_assert(R >= 1, "xla::index_select: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, "index_select");
  return detail::select_along(x, at, detail::check_index(index, x.size(at), "index_select"));
}

/// x with the source's slices added at an index (n) along an axis, in the order of the source.
template <class T, int R>
constexpr Tensor<T, R> index_add(const Tensor<T, R>& x, int axis,
                                 const Tensor<std::int64_t, 1>& index, const Tensor<T, R>& source) {
  static_assert(R >= 1, "xla::index_add: needs at least one axis");
  static_assert(!std::is_same_v<T, bool>, "xla::index_add: needs numbers, not bool; cast first");
  const int at = detail::axis_of(x, R, axis, "index_add");
  return detail::put_along<op::index_add>(
      x, at, detail::check_index(index, x.size(at), "index_add"), source);
}

}  // namespace xla
