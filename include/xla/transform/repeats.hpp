// SPDX-License-Identifier: Apache-2.0
#pragma once

// Nodes that are recorded once for several rows: an optimizer's rule for the same parameter of all
// blocks. Such a repeat is numbered among the loops, so that passes keep its nodes together; the
// program has its steps once for each row, as if each rule had been recorded. Who records them is
// run/trace/repeated_rules.hpp; whose gradients they are made of, loop_gradient_uses.hpp.

#include "xla/base/owned_array.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"
#include "xla/transform/lower.hpp"

namespace xla::detail {

/// Without what only says where gradients end.
constexpr int attached(const graph& g, int i) {
  while (is<op::detach>(g.nodes[i])) i = g.nodes[i].in[0];
  return i;
}
/// Which row of what a gradient is: of what the steps of a loop have made, or of a repeat's node.
struct row_found {
  int of = -1, row = 0, rows = 0;
};
constexpr row_found row_of_gradient(const graph& g, int i) {
  i = attached(g, i);
  if (const node& n = g.nodes[i]; is<op::repeat_result>(n)) {
    const auto a = n.attributes<op::of_loop>();
    return {n.in[0], a.number, static_cast<int>(g.loops[a.loop - 1].trip)};
  }
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

/// Finds the parameters whose gradients are all rows of one value.
constexpr void find_repeats(graph& g, repeated_parameter* all, int count) {
  const owned_array<row_found> rows(static_cast<std::size_t>(count) + 1);
  row_found* const at = rows.get();
  for (int i = 0; i < count; ++i) {
    all[i].first = -1;
    at[i] = {};
    if (all[i].slot < 0) continue;
    const slot& s = g.slots[all[i].slot];
    if (s.state == grad_state::present && s.kind == slot_kind::cell)
      at[i] = row_of_gradient(g, s.grad);
  }
  for (int i = 0; i < count; ++i) {
    if (at[i].of < 0 || at[i].row != 0 || at[i].rows < 2) continue;
    int found = 1, stride = 0;
    for (int k = i + 1; k < count && found < at[i].rows; ++k) {
      if (at[k].of != at[i].of) continue;
      if (found == 1) stride = all[k].slot - all[i].slot;
      const slot &a = g.slots[all[i].slot], &b = g.slots[all[k].slot];
      const bool same = at[k].row == found && all[k].group == all[i].group && stride > 0 &&
                        all[k].slot - all[i].slot == found * stride &&
                        a.requires_grad == b.requires_grad &&
                        a.requires_grad_set == b.requires_grad_set &&
                        same_dims(g.nodes[a.current], g.nodes[b.current]);
      if (!same) break;
      ++found;
    }
    if (found != at[i].rows) continue;
    for (int k = i, row = 0; row < found; ++k)
      if (at[k].of == at[i].of) {
        all[k].first = i;
        all[k].row = row++;
        all[k].rows = found;
        all[k].stride = stride;
      }
  }
}

/// A repeat of so many rows of slots that far from one another.
constexpr int open_repeat(graph& g, int rows, int stride) {
  for (int i = 0; i < g.loop_count; ++i)
    if (g.loops[i].stride == stride && g.loops[i].trip == rows) return i + 1;
  const int around = g.loop;
  const int number = open_loop(g, rows, *g.rules_of_loops);
  g.loop = around;
  g.loops[number - 1].stride = stride;
  return number;
}

/// What is in a repeat for one node of each row.
constexpr int repeat_input_of(graph& g, int rows, int stride, const int* nodes) {
  const int repeat = open_repeat(g, rows, stride);
  bool made = true;
  const node& first = g.nodes[attached(g, nodes[0])];
  for (int k = 0; k < rows; ++k) {
    const node& n = g.nodes[attached(g, nodes[k])];
    made = made && is<op::repeat_result>(n) && n.in[0] == first.in[0] &&
           n.attributes<op::of_loop>().number == k && n.attributes<op::of_loop>().loop == repeat;
  }
  if (made) return first.in[0];
  node n;
  n.op = &builtin<op::repeat_input>;
  n.type = first.type;
  n.set_shape(first.dims_shape());
  n.set<op::repeat_input>({repeat, 0});
  g.lists.open(n, rows);
  for (int k = 0; k < rows; ++k) g.inputs(n)[k] = nodes[k];
  return g.add(n);
}
/// What a repeat has made in a row.
constexpr int repeat_result_of(graph& g, int rows, int stride, int made, int row) {
  if (repeat_of(g, g.nodes[made].loop) == nullptr) return made;  // the same for all
  const node& from = g.nodes[made];
  node n;
  n.op = &builtin<op::repeat_result>;
  n.type = from.type;
  n.set_shape(from.dims_shape());
  n.set<op::repeat_result>({open_repeat(g, rows, stride), row});
  n.arity = 1;
  n.in[0] = made;
  return g.add(n);
}

/// How many nodes there would be, were all rows recorded as well.
constexpr int count_repeated(const graph& g) {
  int n = g.count;
  for (int i = 0; i < g.count; ++i)
    if (const loop_range* r = repeat_of(g, g.nodes[i].loop)) n += static_cast<int>(r->trip);
  return n;
}

/// What a region of a repeat has made in a row is in that region until steps are numbered, and
/// does not wait for it. So the region may grow as if each row were one.
[[gnu::cold]] constexpr bool join_repeat(fuser& of, int i) {
  const node& n = of.g.nodes[i];
  if (!is<op::repeat_result>(n) || of.region_of[n.in[0]] < 0) return false;
  of.region_of[i] = of.region_of[n.in[0]];
  return true;
}

/// The steps of repeats, row by row.
struct repeat_lowering {
  lowering& l;
  program_builder& out = l.out_;
  graph& g = l.g_;

  /// Numbers all values, of a node of a repeat those of all rows one after the other.
  [[gnu::cold]] constexpr void number_values() {
    leave_regions();
    const owned_array<bool> outside(l.s_.room());
    l.find_outside(outside.get());
    for (int i = 0; i < g.count; ++i) {
      l.value_of_[i] = -1;
      if (!l.live_[i]) continue;
      const bool in_memory = l.region_of_[i] < 0 || outside.get()[i];
      if (!number(i, in_memory) && in_memory) l.number_value(i);
    }
  }
  /// Adds the steps of a node of a repeat, or of its region, for each row.
  [[gnu::cold]] constexpr void add(int i) {
    // What the steps name: nodes, and what each stands for in the first row.
    int count = 0;
    const owned_array<int> near(room(i)), first(room(i));
    const auto note = [&](int node) {
      for (int k = 0; k < count; ++k)
        if (near.get()[k] == node) return;
      first.get()[count] = l.value_of_[node];
      near.get()[count++] = node;
    };
    each_member(i, [&](int member) {
      note(member);
      for (int k = 0; k < g.nodes[member].arity; ++k) note(g.inputs(g.nodes[member])[k]);
    });
    const extent rows = g.loops[g.nodes[i].loop - 1].trip;
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < count; ++k) {
        l.value_of_[near.get()[k]] = first.get()[k];
        l.stamp_[near.get()[k]] = -1;
      }
      for (int k = count - 1; k >= 0; --k)
        l.value_of_[near.get()[k]] = value_in(near.get()[k], row);
      l.add_step(i);
    }
    for (int k = 0; k < count; ++k) l.value_of_[near.get()[k]] = first.get()[k];
  }

 private:
  constexpr void leave_regions() {
    pass_state& s = l.s_;
    for (int i = 0; i < g.count; ++i) {
      if (s.region_of[i] < 0 || !is<op::repeat_result>(g.nodes[i])) continue;
      s.stage[i] = s.stage_at(i);
      s.region_of[i] = -1;
    }
  }
  constexpr int value_in(int node, int row) const {
    const auto& n = g.nodes[node];
    if (!repeat_of(g, n.loop)) return l.value_of_[node];
    if (is<op::repeat_input>(n)) return l.value_of_[g.inputs(n)[row]];
    return l.value_of_[node] < 0 ? -1 : l.value_of_[node] + row;
  }
  constexpr bool number(int i, bool in_memory) {
    const auto& n = g.nodes[i];
    if (is<op::repeat_result>(n)) {
      l.value_of_[i] = value_in(n.in[0], n.attributes<op::of_loop>().number);
      return true;
    }
    const loop_range* const repeat = repeat_of(g, n.loop);
    if (!repeat) return false;
    if (is<op::repeat_input>(n)) {
      l.value_of_[i] = value_in(i, 0);
      return true;
    }
    if (!in_memory) return true;
    l.value_of_[i] = out.count.values;
    for (int row = 0; row < repeat->trip; ++row) {
      node& v = out.values[out.count.values++] = n;
      v.needs_grad = false;
      v.loop = 0;  // to the program it is a value as any other
      const int* const in = g.inputs(n);
      const bool listed = n.arity > few_inputs;
      if (listed) v.in[0] = out.count.inputs;
      for (int k = 0; k < n.arity; ++k)
        (listed ? out.inputs[out.count.inputs++] : v.in[k]) = value_in(in[k], row);
    }
    return true;
  }
  constexpr void each_member(int i, const auto& f) const {
    const int r = l.region_of_[i];
    if (r < 0) {
      f(i);
      for (int k = i + 1; g.nodes[i].op->results > 1 && k < g.count; ++k)
        if (l.live_[k] && is<op::output>(g.nodes[k]) && g.nodes[k].in[0] == i) f(k);
      return;
    }
    for (int k = l.in_region_.first(r); k >= 0; k = l.in_region_.after(k)) f(k);
  }
  constexpr std::size_t room(int i) const {
    std::size_t n = 1;
    each_member(i, [&](int member) { n += static_cast<std::size_t>(g.nodes[member].arity) + 1; });
    return n;
  }
};

}  // namespace xla::detail
