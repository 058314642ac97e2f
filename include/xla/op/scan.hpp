// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/reduce.hpp"

namespace xla::op {

/// Sums along an axis up to each element. attr: the axis, + 8 to go from the last element.
struct cumsum {
  static constexpr auto name = "cumsum";
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  static constexpr int axis(std::int64_t attr) { return static_cast<int>(attr & 7); }
  static constexpr bool from_last(std::int64_t attr) { return attr & 8; }
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
  static constexpr void gradient(auto& g) { g.to(0, cumsum_by(g.grad(), g.attr() ^ 8)); }
};

}  // namespace xla::op

namespace xla {
namespace detail {
template <class T, int R>
constexpr Tensor<T, R> cumsum_by(const Tensor<T, R>& x, std::int64_t attr) {
  node n;
  n.attr = attr;
  return apply<op::cumsum, T, T, R>(n, x);
}
}  // namespace detail

/// The sums of the elements along an axis up to each one.
template <class T, int R>
constexpr Tensor<T, R> cumsum(const Tensor<T, R>& x, int axis, caller who = here()) {
  static_assert(R >= 1, "xla::cumsum: needs at least one axis");
  return detail::cumsum_by(x, detail::axis_of(x, R, axis, {"cumsum", who}));
}
/// Of bool: how many hold up to each element.
template <int R>
constexpr Tensor<std::int64_t, R> cumsum(const Tensor<bool, R>& x, int axis, caller who = here()) {
  return cumsum(cast<std::int64_t>(x), axis, who);
}

}  // namespace xla
