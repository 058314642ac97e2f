// SPDX-License-Identifier: Apache-2.0
#pragma once

// Nodes that are recorded once for several rows: an optimizer's rule for the same parameter of all
// blocks. Such a repeat is numbered among the loops, so that passes keep its nodes together; the
// program has its steps once for each row, as if each rule had been recorded.
// run/trace/repeated_rules.hpp records them; loop_gradient_uses.hpp finds their owners.

#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"
#include "xla/transform/lower.hpp"

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
  for (int k = 0; k < rows; ++k) g.inputs(n)[k] = nodes.get()[k];
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
  int n = g.count;
  for (int i = 0; i < g.count; ++i)
    if (const loop_range* r = repeat_of(g, g.nodes[i].loop)) n += static_cast<int>(r->trip);
  return n;
}

/// A region of a repeat reads its own result of a row directly, until steps are numbered, and does
/// not wait for it. So the region may grow as if each row were one.
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
  const owned_array<int> strides{l.s_.room()};  // per repeat_input: see stride_of

  /// Numbers all values; a node of a repeat has those of all rows one after the other.
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
  /// Adds the steps of a node of a repeat, or of its region, for each row: those of later rows are
  /// the first row's with other values.
  [[gnu::cold]] constexpr void add(int i) {
    const int at = out.count.steps;
    l.add_step(i);
    const step first = out.steps[at];
    const owned_array<int> nodes(static_cast<std::size_t>(first.inputs + first.outputs) + 1);
    int* const inputs = nodes.get();
    int* const outputs = inputs + first.inputs;
    find_operands(i, first, inputs, outputs);
    const bool library = first.kind == step_kind::library;
    const bool listed = library && g.nodes[i].arity > few_inputs;
    const int rows = static_cast<int>(g.loops[g.nodes[i].loop - 1].trip);
    if (!listed && stores_first(inputs, first.inputs)) {
      out.rows[out.count.rows++] = {at, stored_row::of_step, rows,
                                    add_strides(inputs, first.inputs)};
      return;
    }
    const int end = out.count.steps + rows - 1;
    for (int row = 1; out.count.steps < end; ++row) {
      step& s = out.steps[out.count.steps++] = first;
      if (library) s.value += row;
      s.first_input =
          listed ? out.values[s.value].in[0] : out.count.inputs + (row - 1) * first.inputs;
      s.first_output = out.count.outputs + (row - 1) * first.outputs;
    }
    for (int k = 0; !listed && k < first.inputs; ++k)
      put_rows(inputs[k], rows, out.inputs + out.count.inputs + k, first.inputs);
    for (int k = 0; k < first.outputs; ++k)
      put_rows(outputs[k], rows, out.outputs + out.count.outputs + k, first.outputs);
    if (!listed) out.count.inputs += (rows - 1) * first.inputs;
    out.count.outputs += (rows - 1) * first.outputs;
  }

  /// The writes of rows.
  [[gnu::cold]] constexpr void number_writes() {
    for (int i = 0; i < l.roots_.write_count; ++i) {
      const write& w = l.roots_.writes[i];
      const int node = l.root(w.value);
      if (repeat_of(g, g.nodes[node].loop))
        out.writes[i].value = value_in(node, g.slots[w.slot].row);
    }
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
  /// By how much the value of a node in a row differs from that in the row before; `irregular` if
  /// that varies.
  constexpr int stride_of(int node) const {
    const auto& n = g.nodes[node];
    if (!repeat_of(g, n.loop)) return 0;
    return is<op::repeat_input>(n) ? strides.get()[node] : 1;
  }
  static constexpr int irregular = -1;
  constexpr int find_stride(const int* in, int rows) const {
    const int stride = l.value_of_[in[1]] - l.value_of_[in[0]];
    for (int row = 2; row < rows; ++row)
      if (l.value_of_[in[row]] - l.value_of_[in[row - 1]] != stride) return irregular;
    return stride;
  }
  /// Whether the first row alone is stored, given the nodes that it reads. Rows are not few enough
  /// for the compiler, and a program made at run time needs them at once.
  constexpr bool stores_first(const int* nodes, int count) const {
    if (!__builtin_is_constant_evaluated()) return false;
    for (int k = 0; k < count; ++k)
      if (stride_of(nodes[k]) == irregular) return false;
    return true;
  }
  constexpr int add_strides(const int* nodes, int count) {
    const int first = out.count.inputs;
    for (int k = 0; k < count; ++k) out.inputs[out.count.inputs++] = stride_of(nodes[k]);
    return first;
  }
  /// Puts the values of a node in all rows but the first into an array, `every` places apart.
  constexpr void put_rows(int node, int rows, int* to, int every) const {
    const auto& n = g.nodes[node];
    if (repeat_of(g, n.loop) && is<op::repeat_input>(n)) {
      const int* const in = g.inputs(n);
      for (int row = 1; row < rows; ++row) to[(row - 1) * every] = l.value_of_[in[row]];
      return;
    }
    const int value = l.value_of_[node];
    const int step = repeat_of(g, n.loop) && value >= 0 ? 1 : 0;
    for (int row = 1; row < rows; ++row) to[(row - 1) * every] = value + step * row;
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
      strides.get()[i] = find_stride(g.inputs(n), static_cast<int>(repeat->trip));
      return true;
    }
    if (!in_memory) return true;
    l.value_of_[i] = out.count.values + l.skipped_;
    number_rows(n, static_cast<int>(repeat->trip));
    return true;
  }
  constexpr void number_rows(const node& n, int rows) {
    node first = n;
    first.needs_grad = false;
    first.loop = 0;  // to the program it is a value like any other
    const int* const in = g.inputs(n);
    const bool listed = n.arity > few_inputs;
    const int slots = repeat_of(g, n.loop)->stride;
    if (!listed && stores_first(in, n.arity)) {
      out.rows[out.count.rows++] = {out.count.values, out.count.values + l.skipped_, rows,
                                    add_strides(in, n.arity)};
      out.inputs[out.count.inputs++] = slots;
      node& v = out.values[out.count.values++] = first;
      for (int k = 0; k < n.arity; ++k) v.in[k] = value_in(in[k], 0);
      l.skipped_ += rows - 1;
      return;
    }
    const owned_array<int> inputs(static_cast<std::size_t>(rows) * n.arity + 1);
    for (int k = 0; k < n.arity; ++k) {
      inputs.get()[k] = value_in(in[k], 0);
      put_rows(in[k], rows, inputs.get() + n.arity + k, n.arity);
    }
    const int* next = inputs.get();
    for (int row = 0; row < rows; ++row) {
      node& v = out.values[out.count.values++] = first;
      add_to_slot(v, row * slots);
      if (listed) v.in[0] = out.count.inputs;
      for (int k = 0; k < n.arity; ++k)
        (listed ? out.inputs[out.count.inputs++] : v.in[k]) = *next++;
    }
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
  /// The nodes behind a step's inputs and outputs, in its order.
  [[gnu::cold]] constexpr void find_operands(int i, const step& of, int* inputs,
                                             int* outputs) const {
    const bool region = of.kind != step_kind::library;
    int made = 0;
    each_member(i, [&](int member) {
      const int* const in = g.inputs(g.nodes[member]);
      for (int k = 0; k < g.nodes[member].arity; ++k)
        if (!region && member == i) inputs[k] = in[k];
        else if (region && l.region_of_[in[k]] != l.region_of_[i]) inputs[l.local_[in[k]]] = in[k];
      if (l.value_of_[member] >= 0) outputs[made++] = member;
    });
  }
};

}  // namespace xla::detail
