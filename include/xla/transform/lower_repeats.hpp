// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the nodes of repeats (repeats.hpp) into values and steps of a program, for each row or, in
// the compiler, for the first one alone. lower_loops.hpp uses it.

#include "xla/op/slice.hpp"
#include "xla/transform/lower.hpp"
#include "xla/transform/repeats.hpp"

namespace xla::detail {

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
    const owned_array<int> inputs(l.s_.room());  // per first row of a repeat_input: that node
    find_first_rows(inputs.get());
    for (int i = 0; i < g.count; ++i) {
      if (!l.live_[i] || l.value_of_[i] >= 0) continue;
      if (inputs.get()[i] >= 0 && number_inputs(inputs.get()[i])) continue;
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

  /// The steps of a repeat_sum.
  [[gnu::cold]] constexpr void add_sum(int i) {
    const summands all = find_summands(g.nodes[i]);
    const int* const values = all.values.get();
    int made = l.value_of_[i] - (all.count + all.per_step - 2) / all.per_step;
    for (int k = 1; k < all.count; k += all.per_step) {
      step s;
      s.value = made + 1;
      s.first_input = out.count.inputs;
      s.inputs = all.count - k < all.per_step ? all.count - k + 1 : all.per_step + 1;
      out.inputs[out.count.inputs++] = k == 1 ? values[0] : made;
      for (int n = 0; n < s.inputs - 1; ++n) out.inputs[out.count.inputs++] = values[k + n];
      s.first_output = out.count.outputs;
      s.outputs = 1;
      out.outputs[out.count.outputs++] = ++made;
      if (all.per_step > 1) make_region(s, op_of_sum(g.nodes[i]), g.nodes[i].type);
      out.steps[out.count.steps++] = s;
    }
  }

  /// The writes of rows.
  [[gnu::cold]] constexpr void number_writes() {
    for (int i = 0; i < l.roots_.write_count; ++i) {
      const write& w = l.roots_.writes[i];
      const int node = l.s_.to[w.value], value = out.writes[i].value;
      if (value < 0 || !repeat_of(g, g.nodes[node].loop)) continue;
      if (is<op::repeat_input>(g.nodes[node]))
        out.writes[i].value = value_in(node, g.slots[w.slot].row);
      else out.writes[i].value = value + g.slots[w.slot].row;
    }
  }

 private:
  /// The values that a repeat_sum adds up, and how many of them each step adds to the sum so far:
  /// as many as a region may read, and all steps the same number if that is possible, so that they
  /// have one kernel. Without regions each addition is a step.
  struct summands {
    owned_array<int> values;
    int count = 0, per_step = 1;
  };
  constexpr summands find_summands(const node& n) const {
    const auto of = n.attributes<op::repeat_sum>();
    const int rows = static_cast<int>(g.loops[of.loop - 1].trip);
    const int* const in = g.inputs(n);
    summands all{owned_array<int>(static_cast<std::size_t>(rows * n.arity) + 1)};
    int* const to = all.values.get();
    if (of.number == 1) to[all.count++] = l.value_of_[in[0]];
    for (int row = 0; row < rows; ++row)
      for (int k = of.number; k < n.arity; ++k) to[all.count++] = value_in(in[k], row);
    if (l.s_.region_count == 0) return all;
    constexpr int most = fuser::max_reads - 1;
    all.per_step = most;
    while ((all.count - 1) % all.per_step != 0 && 2 * all.per_step > most) --all.per_step;
    if ((all.count - 1) % all.per_step != 0) all.per_step = most;
    return all;
  }
  constexpr const op_info& op_of_sum(const node& n) const {
    return *g.loops[n.attributes<op::repeat_sum>().loop - 1].add;
  }
  constexpr void number_sum(int i) {
    const auto& n = g.nodes[i];
    const summands all = find_summands(n);
    const int* const values = all.values.get();
    node sum = n;
    sum.op = &op_of_sum(n);
    sum.arity = 2;
    sum.attr = {};
    for (int k = 1; k < all.count; k += all.per_step) {
      const int last = k + all.per_step < all.count ? k + all.per_step - 1 : all.count - 1;
      sum.in[0] = k == 1 ? values[0] : l.value_of_[i];
      sum.in[1] = values[last];
      l.value_of_[i] = out.count.values + l.skipped_;
      out.values[out.count.values++] = sum;
    }
  }
  /// Makes a step that adds its inputs in their order a region.
  constexpr void make_region(step& s, const op_info& add, dtype type) {
    using kernel::micro_op;
    const int count = s.inputs - 1;
    s.kind = step_kind::map;
    s.value = -1;
    s.ops = count;
    s.space = out.count.spaces;
    out.spaces[out.count.spaces++] = {};
    s.first_word = out.count.words;
    for (int k = 0; k <= count; ++k) l.add_word(micro_op::input_word(type, true, false), nullptr);
    for (int k = 1; k <= count; ++k) {
      const auto word = micro_op::op_word(add.id, type, k == count, false, false);
      const int sum = k == 1 ? 0 : count + k - 1;
      l.add_word(micro_op::with(micro_op::with(word, 0, sum), 1, k), &add);
    }
    s.words = out.count.words - s.first_word;
    s.kernel = l.key_of(s);
  }
  constexpr void find_first_rows(int* inputs) const {
    for (int i = 0; i < g.count; ++i) l.value_of_[i] = inputs[i] = -1;
    if (!__builtin_is_constant_evaluated()) return;
    for (int i = g.after_leaves(); i < g.count; ++i)
      if (l.live_[i] && is<op::repeat_input>(g.nodes[i])) inputs[g.inputs(g.nodes[i])[0]] = i;
  }
  /// If the inputs of rows differ in their slots alone, or slices in their starts: numbers them one
  /// after the other, and stores the first row alone.
  constexpr bool number_inputs(int i) {
    const int rows = g.nodes[i].arity;
    const int* const in = g.inputs(g.nodes[i]);
    const node& first = g.nodes[in[0]];
    const bool leaf = is<op::input>(first);
    if (!leaf && (!is<op::slice>(first) || !is_known(first.attr.size))) return false;
    const auto position = [&](const node& n) {
      return leaf ? static_cast<std::int64_t>(n.attr.low) : n.attr.size;
    };
    const std::int64_t distance = position(g.nodes[in[1]]) - position(first);
    if (distance <= 0 || distance > std::int64_t{1} << 30) return false;
    op_record as = first;
    for (int row = 1; row < rows; ++row) {
      const node& next = g.nodes[in[row]];
      if (leaf) as.attr.low += static_cast<std::uint64_t>(distance);
      else as.attr.size += distance;
      if (!same_record(as, next) || next.in[0] != first.in[0] || l.value_of_[in[row]] >= 0)
        return false;
    }
    out.rows[out.count.rows++] = {out.count.values, out.count.values + l.skipped_, rows,
                                  out.count.inputs};
    if (!leaf) out.inputs[out.count.inputs++] = 0;
    out.inputs[out.count.inputs++] = static_cast<int>(distance);
    l.number_value(in[0]);
    l.skipped_ += rows - 1;
    for (int row = 1; row < rows; ++row) l.value_of_[in[row]] = l.value_of_[in[0]] + row;
    return true;
  }
  constexpr void leave_regions() {
    pass_state& s = l.s_;
    for (int i = g.after_leaves(); i < g.count; ++i) {
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
    if (is<op::repeat_sum>(n)) {
      number_sum(i);
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
    const int slots = is<op::gradient_part>(n) ? repeat_of(g, n.loop)->stride : 0;
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
