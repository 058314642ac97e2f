// SPDX-License-Identifier: Apache-2.0
#pragma once

// An op that gives each replica its part of a tensor. ZeroRedundancy uses it; nothing is exchanged.

#include "xla/op/collectives.hpp"

namespace xla::op {

/// The part of a tensor along an axis that belongs to this replica, padded with zeros.
struct local_shard {
  static constexpr auto name = "local_shard";
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool alone_is_input = true;
  struct attributes {
    detail::axis_number axis{};
    detail::size_value part{};
    XLA_ATTRIBUTES(axis, part)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    const auto [axis, part] = r.attributes<local_shard>();
    s[axis] = part;
    return s;
  }
  static constexpr void gradient(auto& g) {
    refuse_now(g.grad(), "backward: local_shard has no gradient; detach() its input");
  }
};

}  // namespace xla::op

XLA_OP(xla::op::local_shard, all);

namespace xla {

/// This replica's part of x along an axis, one of as many equal parts as the world has replicas,
/// padded with zeros. It is the part that reduce_scatter(…, padded) gives it of a sum, but nothing
/// is exchanged.
template <class T, int R>
constexpr Tensor<T, R> local_shard(const Tensor<T, R>& x, int dim = 0, caller loc = here()) {
  static_assert(R != 0, "xla::local_shard: a tensor without axes cannot be divided");
  const int axis = detail::checked_axis(x, dim, {"local_shard", loc});
  const Size world = world_size(x), part = (x.size(axis) + world - 1) / world;
  return detail::apply_collective<op::local_shard>(x, {axis, part.extent()}, loc);
}

}  // namespace xla
