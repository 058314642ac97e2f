// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory orders of what loops carry, slice and stack, for the pass of transform/layouts.hpp.

#include "xla/graph/loops.hpp"
#include "xla/op/layout_rule.hpp"
#include "xla/shape/layout.hpp"

namespace xla::detail {

/// The order of a value whose channels are innermost, as convolutions in the steps want it;
/// otherwise row-major, as products want it.
constexpr layout image_order(int rank, layout order) {
  return channels_innermost(rank, order) ? order : layout{};
}
/// The order of a stack of values of this rank: the axis of the steps is the outermost.
constexpr layout stacked_order(int rank, layout order) {
  int axes[max_rank] = {};
  for (int i = 0; i < rank; ++i) axes[i + 1] = order.axis(i) + 1;
  return order.is_row_major() ? layout{} : layout::of(axes, rank + 1);
}
/// The order of a stack's slices, each of this rank, if these are contiguous memory.
constexpr layout slice_order(int rank, layout stack) {
  if (stack.axis(0) != 0) return {};
  int axes[max_rank] = {};
  for (int i = 0; i < rank; ++i) axes[i] = stack.axis(i + 1) - 1;
  return image_order(rank, layout::of(axes, rank));
}

/// See loop_rules::layouts. A carry keeps the order of its initial value, so that no step copies
/// it, and a step's values are stacked in their own order.
constexpr void loop_layouts(const graph& g, const node& n, const laid_out* in, const node& first,
                            const layout* made, layout* order) {
  layout& result = order[n.arity];
  if (is<op::loop>(n)) {
    const int carries = n.attributes<op::loop>().carries;
    for (int k = carries; k < 2 * carries; ++k)
      order[k - carries] = order[k] = image_order(in[k].value->rank, in[k].order);
  } else if (is<op::carry>(n)) {
    order[0] = result = image_order(n.rank, in[0].order);
  } else if (is<op::last_step>(n)) {
    const int init = first.attributes<op::loop>().carries + n.attributes<op::of_carry>().number;
    result = made[g.inputs(first)[init]];
  } else if (is<op::steps>(n)) {
    order[1] = image_order(n.rank - 1, in[1].order);
    result = stacked_order(n.rank - 1, order[1]);
  } else if (is<op::step_slice>(n) || is<op::step_before>(n)) {
    result = slice_order(n.rank, in[0].order);
    order[0] = stacked_order(n.rank, result);
    if (is<op::step_before>(n)) order[1] = result;
  }
}

}  // namespace xla::detail
