// SPDX-License-Identifier: Apache-2.0
#pragma once

// Nodes that are recorded once for several rows: an optimizer's rule for the same parameter of all
// blocks. Such a repeat is numbered among the loops, so that passes keep its nodes together; the
// program has its steps once for each row, as if each rule had been recorded.
// run/trace/repeated_rules.hpp records them; loop_gradient_uses.hpp finds their owners,
// lower_repeats.hpp makes their steps.

#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"
#include "xla/transform/fuse.hpp"

namespace xla::detail {

/// Skips nodes that only mark where gradients end.
constexpr int attached(const graph& g, int i) {
  while (is<op::detach>(g.nodes[i])) i = g.nodes[i].in[0];
  return i;
}
/// The row that a gradient is: of the stacked values of a loop's steps, or of a repeat's node.
struct row_found {
  int of = -1, row = 0, rows = 0;
};
constexpr row_found row_of_repeat(const graph& g, int made, int row) {
  return {made, row, static_cast<int>(g.loops[g.nodes[made].loop - 1].trip)};
}
constexpr row_found row_of_gradient(const graph& g, int i) {
  i = attached(g, i);
  if (const node& n = g.nodes[i]; is<op::repeat_result>(n))
    return row_of_repeat(g, n.in[0], n.attributes<op::of_loop>().number);
  while (is<op::reshape>(g.nodes[i])) i = g.nodes[i].in[0];
  const node& part = g.nodes[i];
  if (!is<op::slice>(part) || part.rank == 0) return {};
  const auto about = part.attributes<op::slice>();
  const extent start = about.start, length = part.dims[0];
  if (about.axis != 0 || about.step != 1 || !is_known(start) || !is_known(length)) return {};
  const extent all = g.nodes[part.in[0]].dims[0];
  int of = part.in[0];
  while (is<op::reshape>(g.nodes[of])) of = g.nodes[of].in[0];
  const extent rows = g.nodes[of].dims[0];
  if (!is<op::steps>(g.nodes[of]) || !is_known(rows) || length == 0 || all != rows * length ||
      start % length != 0)
    return {};
  return {of, static_cast<int>(start / length), static_cast<int>(rows)};
}

/// Links the parameters whose gradients are rows of one value, in order.
constexpr void link_rows(repeated_parameter* all, const row_found* at, int count) {
  const owned_array<int> tables(static_cast<std::size_t>(count) + 1);
  int* const last = tables.get();  // of each value, in the order within a block
  int found = 0, next = 0;
  for (int i = 0; i < count; ++i) {
    if (at[i].of < 0) continue;
    int k = 0;
    while (k < found && at[last[next]].of != at[i].of) {
      if (++next == found) next = 0;
      ++k;
    }
    if (k == found) next = found++;
    else all[last[next]].next = i;
    last[next] = i;
    if (++next == found) next = 0;
  }
}
/// Finds the blocks that follow one another, and the number of parameters in each.
constexpr void find_blocks(repeated_parameter* all, int count) {
  int end = 0;
  for (int i = 0; i < count; i = end) {
    const int rows = all[i].rows, stride = all[i].stride;
    end = i;
    while (end < count && all[end].first == end && all[end].rows == rows &&
           all[end].stride == stride)
      ++end;
    const int in_row = end - i, last = i + in_row * rows;
    for (int k = end; k < last && k < count; ++k) {
      if (all[k].first != i + (k - i) % in_row || all[k].row != (k - i) / in_row) break;
      end = k + 1;
    }
    if (in_row == 0) ++end;
    else if (end != last) end = i + in_row;
    else
      for (int k = i; k < end; ++k) all[k].block = i;
    all[i].in_row = in_row;
  }
}

/// Finds the parameters whose gradients are all the rows of one value.
constexpr void find_repeats(graph& g, repeated_parameter* all, int count) {
  const owned_array<row_found> rows(static_cast<std::size_t>(count) + 1);
  row_found* const at = rows.get();
  for (int i = 0; i < count; ++i) {
    at[i] = {};
    if (all[i].slot < 0) continue;
    const slot& s = g.slots[all[i].slot];
    if (s.state != grad_state::present || s.kind != slot_kind::cell) continue;
    if (s.grad >= 0) at[i] = row_of_gradient(g, s.grad);
    else at[i] = row_of_repeat(g, s.repeated_grad, s.row);
  }
  link_rows(all, at, count);
  for (int i = 0; i < count; ++i) {
    if (at[i].of < 0 || at[i].row != 0 || at[i].rows < 2 || all[i].next < 0) continue;
    const int stride = all[all[i].next].slot - all[i].slot;
    const slot& a = g.slots[all[i].slot];
    int found = 1;
    for (int k = all[i].next; k >= 0 && found < at[i].rows; k = all[k].next) {
      const slot& b = g.slots[all[k].slot];
      const bool same =
          at[k].row == found && all[k].group == all[i].group && stride > 0 &&
          all[k].slot - all[i].slot == found * stride && a.requires_grad == b.requires_grad &&
          a.requires_grad_set == b.requires_grad_set && same_dims(g.nodes[a.leaf], g.nodes[b.leaf]);
      if (!same) break;
      ++found;
    }
    if (found != at[i].rows) continue;
    for (int k = i, row = 0; row < found; k = all[k].next) {
      all[k].first = i;
      all[k].row = row++;
      all[k].rows = found;
      all[k].stride = stride;
    }
  }
  find_blocks(all, count);
}

/// A repeat for this many rows of slots at this distance.
constexpr int open_repeat(graph& g, int rows, int stride) {
  for (int i = 0; i < g.loop_count; ++i)
    if (g.loops[i].stride == stride && g.loops[i].trip == rows) return i + 1;
  const int around = g.loop;
  const int number = open_loop(g, rows, *g.rules_of_loops);
  g.loop = around;
  g.loops[number - 1].stride = stride;
  return number;
}

/// The value of which a slot, or its gradient, is bound to a row: with a node or without.
constexpr row_found row_of_slot(const graph& g, const slot& s, bool gradient) {
  const int now = gradient ? s.grad : s.current;
  if (now < 0) return {gradient ? s.repeated_grad : s.repeated, s.row};
  const node& n = g.nodes[attached(g, now)];
  if (!is<op::repeat_result>(n)) return {};
  return {n.in[0], n.attributes<op::of_loop>().number};
}
/// The node in a repeat that stands for a slot of each row, or for its gradient.
constexpr int repeat_input_of(graph& g, int rows, int stride, const int* slots, bool gradient) {
  const int repeat = open_repeat(g, rows, stride);
  const int made = row_of_slot(g, g.slots[slots[0]], gradient).of;
  bool whole = made >= 0 && g.nodes[made].loop == repeat;
  for (int k = 0; k < rows && whole; ++k) {
    const row_found at = row_of_slot(g, g.slots[slots[k]], gradient);
    whole = at.of == made && at.row == k;
  }
  if (whole) return made;
  node n;
  n.op = &builtin<op::repeat_input>;
  g.lists.open(n, rows);
  const owned_array<int> nodes(static_cast<std::size_t>(rows));
  for (int k = 0; k < rows; ++k)
    nodes.get()[k] = gradient ? g.gradient_of(slots[k]) : g.current_of(slots[k]);
  int* const in = g.inputs(n);
  for (int k = 0; k < rows; ++k) in[k] = nodes.get()[k];
  const node& one = g.nodes[attached(g, nodes.get()[0])];
  n.type = one.type;
  n.set_shape(one.dims_shape());
  n.set<op::repeat_input>({repeat, 0});
  return g.add(n);
}
/// The result of a repeat for a row.
constexpr int repeat_result_of(graph& g, int made, int row) {
  const node& from = g.nodes[made];
  if (repeat_of(g, from.loop) == nullptr) return made;  // the same for all rows
  node n;
  n.op = &builtin<op::repeat_result>;
  n.type = from.type;
  n.set_shape(from.dims_shape());
  n.set<op::repeat_result>({from.loop, row});
  n.arity = 1;
  n.in[0] = made;
  return g.add(n);
}
/// The sum of such results of all rows, added by an op to a number, if there is one.
constexpr int repeat_sum_of(graph& g, const op_info& add, int number, const int* made, int count) {
  const node& of = g.nodes[made[0]];
  const int repeat = of.loop, begins = number >= 0;
  node n;
  n.op = &builtin<op::repeat_sum>;
  n.type = of.type;
  n.set<op::repeat_sum>({repeat, begins});
  g.lists.open(n, begins + count);
  int* const in = g.inputs(n);
  if (begins) in[0] = number;
  for (int k = 0; k < count; ++k) in[begins + k] = made[k];
  g.loops[repeat - 1].add = &add;
  return g.add(n);
}
/// Binds a slot to it, without a node.
constexpr void write_row_of(graph& g, int slot_index, int made, int row) {
  slot& s = g.slots[slot_index];
  if (repeat_of(g, g.nodes[made].loop) == nullptr || s.kind != slot_kind::cell || s.functional)
    return g.write(slot_index, repeat_result_of(g, made, row));
  s.current = -1;
  s.repeated = made;
  s.row = row;
}
/// Gives it a node, as if the row had been recorded where the repeat was.
constexpr void name_row_of(graph& g, int slot_index, bool gradient) {
  const int within = std::exchange(g.segment, 0);
  const bool backward = std::exchange(g.in_backward, false);
  slot& s = g.slots[slot_index];
  if (gradient) s.grad = repeat_result_of(g, s.repeated_grad, s.row);
  else g.write(slot_index, repeat_result_of(g, s.repeated, s.row));
  g.segment = within;
  g.in_backward = backward;
}

/// The number of nodes that there would be if all rows were recorded as well.
constexpr int count_repeated(const graph& g) {
  int count = g.count;
  for (int i = g.after_leaves(); i < g.count; ++i) {
    const node& n = g.nodes[i];
    const bool sum = is<op::repeat_sum>(n);
    const int repeat = sum ? n.attributes<op::repeat_sum>().loop : n.loop;
    if (const loop_range* r = repeat_of(g, repeat))
      count += static_cast<int>(r->trip) * (sum ? n.arity : 1);
  }
  return count;
}

/// A region of a repeat reads its own result of a row directly, until steps are numbered, and does
/// not wait for it. So the region may grow as if each row were one.
[[gnu::cold]] constexpr bool join_repeat(fuser& of, int i) {
  const node& n = of.g.nodes[i];
  if (!is<op::repeat_result>(n) || of.region_of[n.in[0]] < 0) return false;
  of.region_of[i] = of.region_of[n.in[0]];
  return true;
}

}  // namespace xla::detail
