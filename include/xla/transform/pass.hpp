// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state that passes read and change: the graph on its way to a program, its regions and its
// roots. The library's passes work on it; custom passes see xla::Graph (pass_graph.hpp).

#include "xla/base/owned_array.hpp"
#include "xla/graph/graph.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// The outputs of a graph: values to return and values to write.
struct graph_roots {
  int* results = nullptr;  ///< nodes
  int result_count = 0;
  write* writes = nullptr;  ///< with nodes as values
  int write_count = 0;
};

/// A set of nodes that one kernel computes in one loop over the same space. It may contain
/// reductions over the space's last axis, with the ops that follow row by row, and sums over the
/// other axes.
struct region {
  shape space;
  dtype main = dtype::boolean;
  bool reduces = false;
  bool read_outside = false;  ///< another step waits for it, so its stage must not change any more
  /// Only for gradients of argument tensors, which most calls do not require.
  bool rare = false;
  int loop = 0;   ///< the loop in whose steps it runs; 0: none
  int stage = 0;  ///< later than the stages of all its inputs
  int nodes = 0;
  int first_read = -1, reads = 0;  ///< distinct values from outside, a list
  int merged_into = -1;
};

/// A graph on its way to a program, passed from one pass to the next. A pass replaces nodes (to),
/// removes them (live), adds some (and renumbers all), or says which nodes form a step together and
/// in what order.
struct pass_state {
  graph& g;
  graph_roots roots;
  bool row_kernels;         ///< the target has kernels for regions with reductions
  bool fuses_rows = false;  ///< such regions are formed
  bool dropped = false;     ///< unneeded nodes are marked as not live
  /// Without these kernels: the target sums columns of maps that run tile by tile.
  bool sums_tiles = false;
  bool fuses_columns = false;  ///< regions with sums of columns are formed
  // Memory of the arrays below.
  owned_array<int> for_to, for_region_of, for_stage;
  owned_array<bool> for_live, for_needs_grad;
  owned_array<region> for_regions;
  owned_array<layout> for_orders;
  int* to = nullptr;           ///< per node: its replacement, itself or an earlier one
  bool* live = nullptr;        ///< per node: it is its own replacement and is needed
  bool* needs_grad = nullptr;  ///< per result: a backward() outside may need its gradient
  int* region_of = nullptr;    ///< per node: the region that computes it, or -1
  int* stage = nullptr;        ///< per node without region: when its step runs
  region* regions = nullptr;
  int region_count = 0;
  layout* orders = nullptr;  ///< per node: its layout; nullptr: all are row-major
  text wrong{};              ///< the pass that has left an illegal graph, and why

  [[gnu::cold]] constexpr pass_state(graph& of, const graph_roots& wanted,
                                     bool row_kernels_are_there)
      : g(of), roots(wanted), row_kernels(row_kernels_are_there) {
    needs_grad = for_needs_grad.renew(static_cast<std::size_t>(roots.result_count) + 1);
    for (int i = 0; i < roots.result_count; ++i)
      needs_grad[i] = g.nodes[roots.results[i]].needs_grad;
    stand_for_themselves();
  }
  pass_state(const pass_state&) = delete;
  pass_state& operator=(const pass_state&) = delete;

  /// One more than there are nodes, so that new[] never gets 0.
  constexpr std::size_t room() const { return static_cast<std::size_t>(g.count) + 1; }

  constexpr void replace(int node, int by) {
    to[node] = by;
    if (by != node) live[node] = false;
  }
  /// Nodes that a node waits for are replaced like its inputs.
  constexpr void follow_replaced(node& n) const {
    if (n.after[0] < 0 && n.after[1] < 0) return;
    for (int& before : n.after)
      if (before >= 0) before = to[before];
  }

  /// Marks the nodes that the roots need; checks, which may throw; and nodes with effects.
  [[gnu::cold]] constexpr void mark_needed(bool* needed, bool in_every_call = false) const {
    const int first = g.after_leaves();
    for (int i = 0; i < first; ++i) needed[i] = false;
    for (int i = first; i < g.count; ++i) needed[i] = runs_anyway(g.nodes[i]);
    for (int i = 0; i < roots.result_count; ++i) needed[to[roots.results[i]]] = true;
    for (int i = 0; i < roots.write_count; ++i)
      if (!in_every_call || !of_argument(roots.writes[i])) needed[to[roots.writes[i].value]] = true;
    for (int i = g.count - 1; i >= first; --i) {
      const node& n = g.nodes[i];
      if (!needed[i]) {
        if (to[i] != i || !n.op->check) continue;
        needed[i] = true;
      }
      const int arity = n.arity;
      if (arity == 0) continue;
      const int* const in = g.inputs(n);
      for (int k = 0; k < arity; ++k) needed[in[k]] = true;
    }
  }

  /// Whether a write is the gradient of an argument tensor, which most calls do not require.
  constexpr bool of_argument(const write& w) const {
    const slot& s = g.slots[w.slot];
    return w.gradient && s.kind != slot_kind::cell && !s.given;
  }
  /// The nodes that serve only such gradients; empty if there are none. They must not change how
  /// the rest is computed, because most calls omit them.
  [[gnu::cold]] constexpr owned_array<bool> find_rare() const {
    bool any = false;
    for (int i = 0; i < roots.write_count; ++i) any |= of_argument(roots.writes[i]);
    if (!any || g.loop_count != 0) return {};  // a loop's steps run together or not at all
    owned_array<bool> rare(room());
    mark_needed(rare.get(), true);
    for (int i = 0; i < g.count; ++i) rare.get()[i] = live[i] && !rare.get()[i];
    return rare;
  }

  /// Node i, if live, is now moved[i]. Afterwards every node is its own replacement.
  [[gnu::cold]] constexpr void renumber(const int* moved) {
    for (int i = 0; i < roots.result_count; ++i) roots.results[i] = moved[to[roots.results[i]]];
    for (int i = 0; i < roots.write_count; ++i)
      roots.writes[i].value = moved[to[roots.writes[i].value]];
    for (int i = 0; i < g.slot_count; ++i)
      for (int* leaf : {&g.slots[i].leaf, &g.slots[i].grad_leaf})
        if (*leaf >= 0) *leaf = moved[*leaf];
    if (__builtin_is_constant_evaluated()) g.leaves = 0;
    stand_for_themselves();
    if (dropped) mark_needed(live);
  }

  /// Without the pass fuse: every node is a step of its own, in program order.
  [[gnu::cold]] constexpr void place_alone() {
    if (stage) return;
    region_of = for_region_of.renew(room());
    stage = for_stage.renew(room());
    for (int i = 0; i < g.count; ++i) {
      region_of[i] = -1;
      stage[i] = i;
    }
  }
  /// Undoes that.
  constexpr void forget_places() { region_of = stage = nullptr; }
  constexpr int live_count() const {
    int n = 0;
    for (int i = 0; i < g.count; ++i) n += live[i];
    return n;
  }
  /// The number of inputs in the program's lists. A loop's step lists its own again, and the rows
  /// of stacks that its steps read in place.
  [[gnu::cold]] constexpr int listed() const {
    if (g.loop_count == 0) return g.lists.count;
    int stacked = 0;
    for (int i = g.after_leaves(); i < g.count; ++i)
      if (const node& n = g.nodes[i]; n.arity > few_inputs && !n.op->loops_steps)
        stacked += n.arity;
    return 2 * g.lists.count + g.loop_count * stacked;
  }
  /// The stage of a node's step: later than those of its inputs.
  constexpr int stage_at(int node) const {
    const int r = region_of[node];
    return r < 0 ? stage[node] : regions[r].stage;
  }

 private:
  [[gnu::cold]] constexpr void stand_for_themselves() {
    to = for_to.renew(room());
    live = for_live.renew(room());
    for (int i = 0; i < g.count; ++i) {
      to[i] = i;
      live[i] = true;
    }
  }
};

}  // namespace xla::detail
