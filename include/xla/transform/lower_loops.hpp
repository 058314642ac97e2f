// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the loops of a graph into steps of a program, and refuses bodies whose values leak out.
// lower.hpp calls it through loop_rules; run/backend/loops.hpp runs such steps.

#include "xla/graph/loops.hpp"
#include "xla/transform/loop_tables.hpp"
#include "xla/transform/lower.hpp"
#include "xla/transform/lower_repeats.hpp"

namespace xla::detail {

/// The steps of loops, after all others: those of each loop are contiguous, followed by those of
/// nested loops. To the program a loop is one step, which reads all outside values that its steps
/// read.
struct loop_lowering {
  lowering& l;
  program_builder& out = l.out_;
  const graph& g = l.g_;
  const owned_array<int> seen{l.s_.room()};  // per node: the last loop found to read it
  const loop_tables tables{l.s_};

  [[gnu::cold]] static constexpr void run(lowering& of) {
    repeat_lowering repeats{of};
    repeats.number_values();
    const int stages = of.count_stages();
    node_lists in_stage(stages, of.s_.room());
    of.order_steps(in_stage);
    loop_lowering loops{of};
    for (int s = 0; s < stages; ++s)
      for (int i = in_stage.first(s); i >= 0; i = in_stage.after(i)) {
        const int loop = of.g_.nodes[i].loop;
        if (is<op::repeat_sum>(of.g_.nodes[i])) repeats.add_sum(i);
        else if (loop == 0 && !loops.tables.left_out(i)) of.add_step(i);
        else if (repeat_of(of.g_, loop)) repeats.add(i);
      }
    loops.lower(in_stage, stages);
    of.finish();
    repeats.number_writes();
  }

 private:
  [[gnu::cold]] constexpr void lower(const node_lists& in_stage, int stages) {
    const int first = out.count.steps;
    for (int i = 0; i < g.count; ++i) seen.get()[i] = 0;
    for (int at = 0; at < out.count.steps; ++at) {
      const int node = loop_of_step(out.steps[at]);
      if (node < 0) continue;
      const int loop = g.nodes[node].attributes<op::loop>().number;
      take_inputs(out.steps[at], node, loop);
      take_outputs(out.steps[at], node);
      out.steps[at].first_body = out.count.steps - first;
      for (int s = 0; s < stages; ++s)
        for (int i = in_stage.first(s); i >= 0; i = in_stage.after(i))
          if (g.nodes[i].loop == loop && !tables.left_out(i)) l.add_step(i);
      out.steps[at].body = out.count.steps - first - out.steps[at].first_body;
    }
    out.count.bodies = out.count.steps - first;
  }
  constexpr int loop_of_step(const step& s) const {
    if (s.kind != step_kind::library || !is<op::loop>(l.stored(s.value))) return -1;
    for (int i = g.after_leaves(); i < g.count; ++i)
      if (l.live_[i] && l.value_of_[i] == s.value && is<op::loop>(g.nodes[i])) return i;
    return -1;
  }

  // If it is more than a number: the node of a carry's initial value.
  static constexpr bool is_number_needed(const node& n, int input) {
    return is<op::step_before>(n) && input == 1;
  }
  constexpr void take(int node, int loop) {
    if (!is_number(g.nodes[node])) take_any(node, loop);
  }
  constexpr void take_any(int node, int loop) {
    if (const int all = tables.tensors_of(node); all >= 0) {
      const auto& of = g.nodes[all];
      for (int k = 0; k < of.arity; ++k) take_any(g.inputs(of)[k], loop);
      return;
    }
    if (in_loop(g, g.nodes[node].loop, loop) || seen.get()[node] == loop) return;
    seen.get()[node] = loop;
    out.inputs[out.count.inputs++] = l.value_of_[node];
  }
  constexpr void take_inputs(step& s, int node, int loop) {
    s.first_input = out.count.inputs;
    const auto& of = g.nodes[node];
    const int* const in = g.inputs(of);
    const int carries = of.template attributes<op::loop>().carries;
    for (int k = 0; k < carries; ++k) take(in[k], loop);
    for (int k = carries; k < of.arity; ++k) take_any(in[k], loop);  // a carry's initial value
    for (int i = g.after_leaves(); i < g.count; ++i) {
      const auto& n = g.nodes[i];
      const bool made = n.in[0] == node && made_by_loop(n) == loop && !is<op::loop>(n);
      if (!l.live_[i] || (!made && (n.loop == 0 || !in_loop(g, n.loop, loop)))) continue;
      for (int k = made ? 1 : 0; k < n.arity; ++k)
        if (is_number_needed(n, k)) take_any(g.inputs(n)[k], loop);
        else take(g.inputs(n)[k], loop);
    }
    s.inputs = out.count.inputs - s.first_input;
  }
  constexpr void take_outputs(step& s, int node) {
    s.first_output = out.count.outputs;
    out.outputs[out.count.outputs++] = s.value;
    for (int i = node + 1; i < g.count; ++i)
      if (l.live_[i] && is_output(i, node)) out.outputs[out.count.outputs++] = l.value_of_[i];
    s.outputs = out.count.outputs - s.first_output;
  }
  constexpr bool is_output(int i, int loop) const {
    const auto& n = g.nodes[i];
    const bool row = is<op::slice>(n);
    if (!row && (n.in[0] != loop || (!is<op::steps>(n) && !is<op::last_step>(n)))) return false;
    const int all = tables.steps_of(i);
    return all < 0 ? !row : row && g.nodes[all].in[0] == loop;
  }
};

/// Whether a value of a loop's body that differs from step to step is used after the loop, or
/// receives gradients from there.
constexpr bool leaks(const graph& g, int loop, const graph_roots& of) {
  const int number = g.nodes[loop].attributes<op::loop>().number;
  const int begin = g.loops[number - 1].begin;
  const auto inner = [&](int i) {
    const node& n = g.nodes[i];
    return n.loop == number || (i < loop && (n.needs_grad || n.input_grad));
  };
  bool leaked = false;
  for (int i = 0; i < of.result_count; ++i)
    leaked |= of.results[i] >= begin && inner(of.results[i]);
  for (int i = 0; i < of.write_count; ++i)
    if (const int v = of.writes[i].value; v >= begin && (v < loop || g.nodes[v].loop == number))
      leaked |= inner(v);
  for (int i = loop + 1; i < g.count; ++i) {
    const node& n = g.nodes[i];
    if (n.gradient || n.arity == 0) continue;  // in a body, rules read what it has saved
    const int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k)
      if (in[k] >= begin && inner(in[k])) leaked |= !is<op::steps>(n);
  }
  return leaked;
}
/// Refuses such a use.
constexpr void refuse_leaks(graph& g, const graph_roots& of) {
  bool leaked = false;
  for (int i = g.after_leaves(); i < g.count && !leaked; ++i)
    leaked = wrong_in_loops(g, i) != nullptr || (is<op::loop>(g.nodes[i]) && leaks(g, i, of));
  if (leaked)
    g.sizes.refused.set(
        "xla: a value made in the body of a loop or a branch of cond() is used outside of it: "
        "return it, from a loop as a carry or as y, and use the result of the loop or cond()");
}

/// A loop begins when all inputs of its steps are available, including saved values that are
/// loop-invariant.
[[gnu::cold]] constexpr void stage_in_loops(fuser& of, int index) {
  if (join_repeat(of, index)) return;
  of.alone(index);
  const node& n = of.g.nodes[index];
  if (!is<op::loop>(n)) return;
  const int loop = n.attributes<op::loop>().number;
  const auto begin_behind = [&](int k) {
    if (of.stage_at(k) >= of.stage[index]) of.stage[index] = of.stage_at(k) + 1;
  };
  for (int k = of.g.after_leaves(); k < index; ++k)
    if (of.live[k] && of.g.nodes[k].loop != 0 && in_loop(of.g, of.g.nodes[k].loop, loop))
      begin_behind(k);
  for (int k = index + 1; k < of.g.count; ++k) {
    const node& kept = of.g.nodes[k];
    if (kept.in[0] != index || !of.live[k] || !is<op::steps>(kept)) continue;
    of.read_from_outside(kept.in[1]);
    begin_behind(kept.in[1]);
  }
}

}  // namespace xla::detail
