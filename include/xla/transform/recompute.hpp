// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass that recomputes cheap values of the forward pass for backward instead of keeping them.
// It needs no request; xla::checkpoint() is the user's own choice (run/trace/checkpoint.hpp).

#include "xla/transform/recompute_facts.hpp"

namespace xla::detail {

/// Recomputes forward values that backward reads if that costs no more than reading them. These are
/// results of elementwise ops on other saved values (activations, normalized rows, softmax's
/// quotient), if they are few: a sum of two branches is recomputed, but not one that depends on
/// another such sum. The copies wait for the gradient that needs them, and fuse with its readers;
/// the originals need not be saved. Chen et al. (2016), where it is free. Batches of products that
/// are larger than their inputs, attention's scores, are recomputed, too: then no tensor of queries
/// times keys outlives the steps around it; Dao et al. (2022).
///
/// The values that a weight's gradient reads of these wait for the input's gradient if both are
/// computed from the same: the step that continues the latter computes them, with the data that it
/// reads anyway. A gradient that is needed again after sums over it, as in batch norm's gradient,
/// is computed again there from the sums' inputs, and not stored.
struct recomputer : recompute_facts {
  const owned_array<int> more{6 * room};
  int* const moved = more.get();        ///< per node: its new number
  int* const due = moved + room;        ///< per late node: the last library step before it
  int* const library_copy = due + room;    ///< per node: its copy for library steps, a product's
                                           ///< only one, or -1
  int* const fused = library_copy + room;  ///< per node: its latest copy for maps and rows, or -1
  int* const fused_at = fused + room;   ///< per node: the gradient that one waits for
  int* const last_reader =
      fused_at + room;                  ///< per node: the last library step that reads it, or -1
  node* old = nullptr;                  ///< the nodes from the first late one on

  using recompute_facts::recompute_facts;

  /// True if nodes have been added: moved[i] is the new position of node i.
  [[gnu::cold]] constexpr bool run() {
    const int count = g.count;
    // It does not see through the carries of loops.
    if (g.loop_count != 0 || !classify()) return false;
    const owned_array<node> memory(static_cast<std::size_t>(count - first));
    old = memory.get();
    for (int i = first; i < count; ++i)
      if (live[i]) old[i - first] = g.nodes[i];
    for (int i = 0; i < count; ++i)
      due[i] = library_copy[i] = fused[i] = fused_at[i] = last_reader[i] = -1;
    g.count = first;
    const int segment = g.segment;
    for (int i = 0; i < count; ++i) {
      if (i < first) moved[i] = i;
      else emit(i);
    }
    g.segment = segment;
    return true;
  }

 private:
  // Copies come first; dead nodes are removed.
  [[gnu::cold]] constexpr void emit(int i) {
    moved[i] = -1;
    if (!live[i]) return;
    const node& of = old[i - first];
    const bool library = of.op->kind == op_kind::library;
    int wait = -1;
    const int* was = g.inputs(of);
    for (int k = 0; late[i] && k < of.arity; ++k)
      if (late[was[k]] && due[was[k]] > wait) wait = due[was[k]];
    node n = of;
    g.lists.own(n);
    for (int k = 0; k < of.arity; ++k) {
      const int sum = late[i] && !library ? sum_before(i, k) : -1;
      int in = g.inputs(of)[k];  // again: the following may add lists
      if (sum >= 0) in = copy_late(in, moved[sum]);
      else if (wait < 0 || again[in] == 0) in = moved[in];
      else in = library ? copy_except(of, k, wait) : copy(in, wait, false);
      g.inputs(n)[k] = in;
    }
    for (int& before : n.after)
      if (before >= 0) before = moved[before];
    moved[i] = add(n);
    if (!late[i]) return;
    const bool same = is_alias(n) && wait == g.inputs(n)[0];
    due[i] = library || same ? moved[i] : wait;
    was = g.inputs(of);
    for (int k = 0; library && !is_rare(i) && k < of.arity; ++k) last_reader[was[k]] = moved[i];
  }
  [[gnu::cold]] constexpr int add(const node& n) {
    g.segment = n.segment;
    return g.add(n);
  }

  /// The new node with the elements of node i.
  constexpr int elements_of(int i) const {
    while (i >= 0 && is_alias(g.nodes[i])) i = g.inputs(g.nodes[i])[0];
    return i;
  }
  constexpr const node& original(int i) const { return i < first ? g.nodes[i] : old[i - first]; }

  /// Input k of a library step, computed again: if the other input's gradient of the same shape is
  /// computed already, in the step that continues it.
  [[gnu::cold]] constexpr int copy_except(const node& of, int k, int wait) {
    const int* const inputs = g.inputs(of);
    const int in = inputs[k];
    if (library_copy[in] >= 0) return library_copy[in];
    int other = -1;
    for (int j = 0; j < of.arity; ++j)
      if (late[inputs[j]] && last_reader[inputs[j]] > other) other = last_reader[inputs[j]];
    const bool together = other > wait && same_dims(g.nodes[other], original(in).dims_shape());
    return together && elementwise_alone(in) ? library_copy[in] = copy(in, other, false)
                                             : copy(in, wait, true);
  }
  /// Whether it is computed again by elementwise ops alone.
  [[gnu::cold]] constexpr bool elementwise_alone(int i) const {
    const node& n = original(i);
    if (again[i] == 0) return true;
    bool all = elementwise(n) || is_alias(n);
    const int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) all = all && elementwise_alone(in[k]);
    return all;
  }

  /// If input k of map i is computed again after a sum: that sum, for which another input waits.
  [[gnu::cold]] constexpr int sum_before(int i, int k) const {
    const node& n = old[i - first];
    if (!elementwise(n)) return -1;
    const int in = n.in[k];
    if (!late[in] || users[in] != 1 || stays[in] || last_sum[in] >= 0) return -1;
    int sum = -1;
    for (int j = 0; j < n.arity; ++j)
      if (late[n.in[j]] && last_sum[n.in[j]] > sum) sum = last_sum[n.in[j]];
    if (sum < 0 || from[sum] != from[in]) return -1;
    made_again r;
    return makes_again(in, r) ? sum : -1;
  }
  struct made_again {
    int ops = 0, base = -1, reads[max_reads] = {};
    constexpr made_again() {
      for (int& r : reads) r = -1;
    }
  };
  /// Whether a late value is computed by few ops from one other and few saved values.
  [[gnu::cold]] constexpr bool makes_again(int i, made_again& r) const {
    const node& n = original(i);
    if (small(n)) return true;
    if (!late[i]) {
      r.ops += again[i];
      bool few = r.ops <= max_ops && elementwise_alone(i);
      for (int j = 0; j < max_reads; ++j)
        few = few && add_read(r.reads, again[i] > 0 ? reads_of(i)[j] : j == 0 ? i : -1);
      return few;
    }
    if (!elementwise(n) || stays[i]) {
      const bool only = r.base < 0 || r.base == i;
      r.base = i;
      return only;
    }
    bool few = ++r.ops <= max_ops;
    for (int k = 0; k < n.arity; ++k) few = few && makes_again(n.in[k], r);
    return few;
  }
  /// Such a value, computed again after a sum.
  [[gnu::cold]] constexpr int copy_late(int i, int sum) {
    const node& of = original(i);
    if (!late[i]) return copy(i, sum, false);
    if (small(of) || !elementwise(of) || stays[i]) return moved[i];
    node n = of;
    for (int k = 0; k < n.arity; ++k) n.in[k] = copy_late(n.in[k], sum);
    n.after[0] = sum;
    return add(n);
  }

  /// Node i computed again after gradient `wait`. Library steps share one copy; so do maps and
  /// rows, into which it fuses, if they wait for the same.
  [[gnu::cold]] constexpr int copy(int i, int wait, bool library) {
    if (again[i] == 0) return moved[i];
    const node& of = original(i);
    const bool product = of.op->kind == op_kind::library;
    library |= product;
    if (library && library_copy[i] >= 0) return library_copy[i];
    if (!library && fused_at[i] == elements_of(wait)) return fused[i];
    node n = of;
    const bool same = product || (library && is_alias(n));
    for (int k = 0; k < n.arity; ++k) n.in[k] = copy(n.in[k], wait, same);
    n.needs_grad = false;
    n.gradient = true;
    if (!is_alias(n)) n.after[0] = wait;
    const int made = add(n);
    if (library) return library_copy[i] = made;
    fused_at[i] = elements_of(wait);
    return fused[i] = made;
  }
};

[[gnu::cold]] constexpr void recompute(pass_state& s) {
  recomputer r(s);
  if (r.run()) s.renumber(r.moved);
}

}  // namespace xla::detail
