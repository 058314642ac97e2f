// SPDX-License-Identifier: Apache-2.0
#pragma once

// The facts about each node that recompute.hpp needs to decide: the pass that made it, its users,
// its cost. It changes no graph.

#include "xla/op/reduce.hpp"
#include "xla/transform/pass.hpp"

namespace xla::detail {

/// Facts about a graph's nodes before values are computed again (recompute.hpp). Nodes are of three
/// kinds: those that backward() made, those that backward() made but that depend on the forward
/// pass alone (a derivative's factors), and the rest. The second kind is treated like the rest.
struct recompute_facts {
  // The limits on the ops behind one value, and on the saved values that they read; more are not
  // free.
  static constexpr int max_ops = 12, max_reads = 2;

  graph& g;
  const bool* live;
  const owned_array<bool> rare;  ///< see find_rare()
  const std::size_t room;
  const owned_array<bool> flags{5 * room};
  const owned_array<int> numbers{(4 + max_reads) * room};
  bool* const varies = flags.get();  ///< per node: depends on more than constants and sizes
  bool* const late = varies + room;  ///< per node: made by backward() of gradients
  bool* const read = late + room;    ///< per node: saved for backward
  bool* const there = read + room;   ///< per node: available during backward
  bool* const stays = there + room;  ///< per late node: others than maps and sums that follow
                                     ///< at once read it
  int* const again = numbers.get();  ///< per node: the ops that compute it again, each of few
                                     ///< inputs; 0: it is not
  int* const users = again + room;   ///< per node: how many read it
  int* const from = users + room;    ///< per late node: the last product or other library
                                     ///< step that it is made of, or itself
  int* const last_sum = from + room;   ///< per late node: the last sum since then on which it
                                       ///< made of, or -1
  int* const reads = last_sum + room;  ///< per node: the saved values from which it is computed
                                       ///< again, max_reads or -1
  int first = 0;                     ///< the first late node, or an earlier one

  explicit constexpr recompute_facts(pass_state& s)
      : g(s.g), live(s.live), rare(s.find_rare()), room(s.room()) {}

  constexpr bool is_rare(int i) const { return rare.get() && rare.get()[i]; }
  static constexpr bool is_alias(const node& n) { return n.op->kind == op_kind::alias; }
  static constexpr bool elementwise(const node& n) {
    return n.op->kind == op_kind::map && !n.op->impure && !n.op->check && n.segment == 0 &&
           n.after[0] < 0;
  }
  /// A batch of products, each larger than its factors; an unknown size counts as large.
  [[gnu::cold]] constexpr bool expands(const node& n) const {
    if (!n.op->product || n.op->takes_axes == 0 || n.rank < 3 || n.segment != 0 || n.after[0] >= 0)
      return false;
    const shape in[] = {g.nodes[n.in[0]].dims_shape(), g.nodes[n.in[1]].dims_shape()};
    const shape loops = n.op->loops(in, n.dims_shape(), n.attr);
    const extent inner = loops[loops.rank - 1];
    const auto larger = [&](extent e) { return !is_known(e) || e > inner; };
    return is_known(inner) && larger(n.dims[n.rank - 2]) && larger(n.dims[n.rank - 1]);
  }
  /// One value per row, or fewer, costs nothing to save.
  static constexpr bool small(const node& n) { return n.rank < 2 || n.dims[n.rank - 1] == 1; }

  /// False if nothing is to be done.
  [[gnu::cold]] constexpr bool classify() {
    first = g.count;
    for (int i = 0; i < g.count; ++i) {
      if (!live[i]) continue;
      const node& n = g.nodes[i];
      late[i] = read[i] = there[i] = false;
      again[i] = 0;
      for (int k = 0; k < max_reads; ++k) reads_of(i)[k] = -1;
      from[i] = last_sum[i] = -1;
      users[i] = 0;
      stays[i] = false;
      varies[i] = is<op::input>(n) || is<op::scalar>(n) || n.op->impure;
      const int* const in = g.inputs(n);
      for (int k = 0; k < n.arity; ++k) varies[i] |= varies[in[k]];
      if (!n.gradient || !varies[i]) continue;
      if (first == g.count) first = i;
      late[i] = !elementwise(n) && !is_alias(n);
      for (int k = 0; k < n.arity; ++k) late[i] |= late[in[k]];
      for (int k = 0; late[i] && !is_rare(i) && k < n.arity; ++k) read[in[k]] = true;
    }
    for (int i = g.count - 1; i >= 0; --i)
      if (live[i] && read[i] && is_alias(g.nodes[i])) read[g.inputs(g.nodes[i])[0]] = true;
    bool any = false;
    for (int i = 0; i < g.count; ++i) {
      if (!live[i]) continue;
      if (late[i]) any |= follow(i);
      else any |= find_again(i) && read[i];
      count_user(i);
    }
    return any;
  }

  /// A sum that exists only when all its terms do, unlike one within each row.
  [[gnu::cold]] constexpr bool gathers(const node& n) const {
    return n.op->kind == op_kind::reduce && n.rank > 1 &&
           n.attributes<op::reduction>().axes != axis_set::one(g.nodes[n.in[0]].rank - 1);
  }
  /// The inputs of a late node; true if a sum is among them.
  [[gnu::cold]] constexpr bool follow(int i) {
    const node& n = g.nodes[i];
    if (n.op->kind == op_kind::library) {
      from[i] = i;
      return false;
    }
    const int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) {
      if (!late[in[k]]) continue;
      if (from[in[k]] > from[i]) from[i] = from[in[k]];
      if (last_sum[in[k]] > last_sum[i]) last_sum[i] = last_sum[in[k]];
    }
    if (gathers(n)) last_sum[i] = i;
    return last_sum[i] >= 0;
  }
  [[gnu::cold]] constexpr void count_user(int i) {
    const node& n = g.nodes[i];
    const int* const inputs = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) {
      const int in = inputs[k];
      ++users[in];
      stays[in] |= !late[i] || n.op->kind == op_kind::library || from[i] > from[in];
    }
  }
  [[gnu::cold]] constexpr bool find_again(int i) {
    const node& n = g.nodes[i];
    bool all = true;
    int ops = is_alias(n) ? 0 : 1;
    const int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) {
      all &= there[in[k]];
      ops += again[in[k]];
    }
    const bool can = is_alias(n) ? again[in[0]] > 0 : (elementwise(n) && !small(n)) || expands(n);
    const bool few = n.arity <= few_inputs && ops <= max_ops;
    if (can && few && all && varies[i] && find_reads(i)) again[i] = ops;
    // Values that depend on sizes and constants alone are computed once for all calls.
    there[i] = again[i] > 0 || read[i] || !varies[i] || small(n) || (is_alias(n) && all);
    return again[i] > 0;
  }

  constexpr int* reads_of(int i) const { return reads + max_reads * i; }
  /// False if they are too many. For products that swell any number is worth it.
  [[gnu::cold]] constexpr bool find_reads(int i) {
    const node& n = g.nodes[i];
    bool few = true;
    for (int k = 0; k < n.arity && !expands(n); ++k) {
      int from = n.in[k];
      if (again[from] > 0) {
        for (int j = 0; j < max_reads; ++j) few &= add_read(reads_of(i), reads_of(from)[j]);
        continue;
      }
      while (is_alias(g.nodes[from])) from = g.inputs(g.nodes[from])[0];
      if (varies[from] && !small(g.nodes[from])) few &= add_read(reads_of(i), from);
    }
    return few;
  }
  [[gnu::cold]] static constexpr bool add_read(int* list, int value) {
    if (value < 0) return true;
    for (int k = 0; k < max_reads; ++k) {
      int& known = list[k];
      if (known < 0) known = value;
      if (known == value) return true;
    }
    return false;
  }
};

}  // namespace xla::detail
