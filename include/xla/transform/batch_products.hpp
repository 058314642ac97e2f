// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass that takes products out of the steps of loops: one product of all steps, before or after
// the loop. It reaches graphs through loop_rules.

#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/op/matmul.hpp"
#include "xla/transform/loop_recorder.hpp"
#include "xla/transform/loop_values.hpp"
#include "xla/transform/pass.hpp"

namespace xla::detail {

/// Whether all steps of a loop run, and what they compute may be kept: their products are then
/// batched in backward, too (loop_products.hpp).
constexpr bool keeps_steps(const graph& g, const node& loop) {
  const auto about = loop.attributes<op::loop>();
  const loop_range& range = g.loops[about.number - 1];
  return !range.branch && range.every == 0 && !about.checkpoints &&
         about.function != loop_function::scan_layers;
}

/// Products by a matrix from outside of the loop that have of_steps, and so the same bits in a step
/// and outside of it:
///   step_slice(x) · w -> step_slice(x · w), if the loop carries rows of that number
///   steps(d · w) -> steps(d) · w, if d is stacked anyway
/// So no stack is larger than those of a recurrent layer that is written with one product.
class batch_products {
 public:
  [[gnu::cold]] static constexpr void run(pass_state& s) {
    bool any = false;
    for (int i = 0; i < s.g.count && !any; ++i)
      any = s.g.nodes[i].loop != 0 && of_steps(s.g.nodes[i]);
    if (any) batch_products(s).rewrite();
  }

 private:
  static constexpr bool of_steps(const node& n) {
    return is<op::matmul>(n) && n.attributes<op::matmul>().of_steps;
  }
  constexpr explicit batch_products(pass_state& s)
      : s_(s),
        g_(s.g),
        old_(s.g.count),
        needed_(s.room()),
        by_(s.room()),
        first_(s.room()),
        readers_(s.room()),
        stack_(s.room()),
        other_stack_(s.room()),
        loops_(static_cast<std::size_t>(s.g.loop_count) + 1) {}

  [[gnu::cold]] constexpr void rewrite() {
    s_.mark_needed(needed_.get());
    find_uses();
    for (int i = 0; i < old_; ++i) {
      by_.get()[i] = i;
      first_.get()[i] = g_.count;
      if (s_.to[i] != i || !needed_.get()[i]) continue;
      const node& n = g_.nodes[i];
      if (is<op::steps>(n)) batch_after(i);
      else if (of_steps(n)) batch_before(i);
    }
    if (g_.count > old_) renumber();
  }

  [[gnu::cold]] constexpr void find_uses() {
    for (int i = 0; i <= g_.loop_count; ++i) loops_.get()[i] = -1;
    for (int i = 0; i < old_; ++i) {
      readers_.get()[i] = 0;
      stack_.get()[i] = -1;
    }
    for (int i = 0; i < old_; ++i) {
      const node& n = g_.nodes[i];
      if (is<op::loop>(n) && runs_as_whole(n)) loops_.get()[made_by_loop(n)] = i;
      if (s_.to[i] != i || !needed_.get()[i]) continue;
      const int* const in = g_.inputs(n);
      for (int k = 0; k < n.arity; ++k) ++readers_.get()[in[k]];
      if (!is<op::steps>(n) || extent{n.attributes<op::steps>().every} != 0) continue;
      other_stack_.get()[i] = stack_.get()[in[1]];
      stack_.get()[in[1]] = i;
    }
  }
  constexpr bool runs_as_whole(const node& loop) const {
    const auto about = loop.attributes<op::loop>();
    return !about.tested && !about.bounded && !about.counted && keeps_steps(g_, loop);
  }
  // The node of the loop in whose steps node i runs; -1: none, or one that may not run as a whole.
  constexpr int loop_of(int i) const { return loops_.get()[g_.nodes[i].loop]; }
  constexpr bool outside(int node, int loop) const {
    return !in_loop(g_, g_.nodes[node].loop, made_by_loop(g_.nodes[loop]));
  }
  constexpr bool carries_rows(int loop, extent rows) const {
    const int carries = g_.nodes[loop].attributes<op::loop>().carries;
    bool found = false;
    for (int k = 0; k < carries; ++k) {
      const node& init = g_.nodes[g_.inputs(g_.nodes[loop])[carries + k]];
      found |= init.rank == 2 && g_.sizes.find(init.dims[0]) == g_.sizes.find(rows);
    }
    return found;
  }

  constexpr void batch_before(int i) {
    node& n = g_.nodes[i];
    const node& x = g_.nodes[n.in[0]];
    if (!is<op::step_slice>(x) || x.arity != 1 || given_by_loop(x) != n.loop) return;
    const int loop = loop_of(i), matrix = n.in[1];
    if (loop < 0 || !outside(matrix, loop) || !carries_rows(loop, n.dims[0])) return;
    const int all = product_of_all(i, loop, x.in[0]);
    node slice = g_.nodes[i];
    slice.op = &builtin<op::step_slice>;
    slice.set<op::step_slice>({slice.loop, 0});
    slice.arity = 1;
    slice.in[0] = all;
    g_.nodes[i] = slice;
  }
  constexpr void batch_after(int i) {
    const int loop = g_.nodes[i].in[0], value = g_.nodes[i].in[1];
    const node& n = g_.nodes[value];
    if (extent{g_.nodes[i].attributes<op::steps>().every} != 0) return;
    if (is<op::step_slice>(n) && n.in[0] >= old_) {
      by_.get()[i] = n.in[0];
      return;
    }
    if (!of_steps(n) || loop_of(value) != loop || !outside(n.in[1], loop)) return;
    if (const int rows = stack_of(n.in[0], loop, value); rows >= 0)
      by_.get()[i] = product_of_all(value, loop, rows);
  }
  // A copy of the stack of a value that some node needs; -1 if there is none, or if other nodes
  // read the product.
  constexpr int stack_of(int value, int loop, int product) {
    if (readers_.get()[product] != 1) return -1;
    int found = stack_.get()[value];
    while (found >= 0 && g_.nodes[found].in[0] != loop) found = other_stack_.get()[found];
    return found < 0 ? -1 : g_.add(node(g_.nodes[found]));
  }

  // x · w of all steps, in the shape of a stack: product i for a stack x.
  constexpr int product_of_all(int i, int loop, int x) {
    const around_loop outer(g_, made_by_loop(g_.nodes[loop]));
    const node of = g_.nodes[i];
    const shape all = g_.nodes[x].dims_shape(), product = of.dims_shape();
    const extent rows = g_.sizes.multiply(all[0], all[1]);
    const int in = add_like(of, x, {2, {rows, all[2]}}, true);
    const int out = add_like(of, in, {2, {rows, product[1]}}, false);
    return add_like(of, out, {3, {all[0], product[0], product[1]}}, true);
  }
  constexpr int add_like(node n, int input, const shape& dims, bool reshapes) {
    n.in[0] = input;
    n.set_shape(dims);
    n.loop = 0;
    if (reshapes) {
      n.op = static_cast<const recorded_loop_rules&>(*g_.rules_of_loops).reshape(n.type);
      n.attr = {};
      n.arity = 1;
    }
    const int at = g_.add(n);
    g_.nodes[at].segment = n.segment;
    return at;
  }

  // Puts the added nodes before those for which they were added.
  [[gnu::cold]] constexpr void renumber() {
    const int count = g_.count;
    const owned_array<int> places(s_.room());
    const owned_array<node> nodes(s_.room());
    int* const moved = places.get();
    int next = 0;
    for (int i = 0; i < old_; ++i) {
      const int end = i + 1 < old_ ? first_.get()[i + 1] : count;
      for (int at = first_.get()[i]; at < end; ++at) moved[at] = next++;
      moved[i] = next++;
    }
    for (int i = 0; i < count; ++i) nodes.get()[i] = g_.nodes[i];
    const auto place = [&](int i) { return moved[i < old_ ? by_.get()[i] : i]; };
    for (int i = 0; i < count; ++i) {
      node& n = g_.nodes[moved[i]] = nodes.get()[i];
      int* const in = g_.inputs(n);
      for (int k = 0; k < n.arity; ++k) in[k] = place(in[k]);
      for (int& before : n.after)
        if (before >= 0) before = moved[before];
    }
    for (int i = 0; i < g_.loop_count; ++i) g_.loops[i].begin = moved[g_.loops[i].begin];
    follow_roots();
    s_.renumber(moved);
  }
  // Roots become their replacements, before nodes get new numbers.
  constexpr void follow_roots() {
    const auto to = [&](int node) { return by_.get()[s_.to[node]]; };
    for (int i = 0; i < s_.roots.result_count; ++i) s_.roots.results[i] = to(s_.roots.results[i]);
    for (int i = 0; i < s_.roots.write_count; ++i)
      s_.roots.writes[i].value = to(s_.roots.writes[i].value);
    s_.to = s_.for_to.renew(s_.room());
    for (int i = 0; i < g_.count; ++i) s_.to[i] = i;
  }

  pass_state& s_;
  graph& g_;
  int old_;
  owned_array<bool> needed_;
  owned_array<int> by_, first_;  // per old node: what its readers read, and the first node added
  // Per old node as well: how many read it, the last stack of its values, and of a stack another
  // one of the same values.
  owned_array<int> readers_, stack_, other_stack_;
  owned_array<int> loops_;  // per number: the node of a loop that runs as a whole
};

}  // namespace xla::detail
