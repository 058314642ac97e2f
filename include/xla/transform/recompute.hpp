// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/transform/pass.hpp"

namespace xla::detail {

/// What backward reads of the forward pass is computed again where that costs no more than to read
/// it: values that elementwise ops make of others which are kept anyway (activations, normalized
/// rows, softmax's quotient), of few at that: a sum of two branches is recomputed, but one that is
/// made of another such sum is kept. The copies wait for the gradient that asks for them, and fuse
/// with what reads it; the first values need not be kept. Chen et al. (2016), where it is free. So
/// are batches of products that are larger than what they are made of, attention's scores: then no
/// tensor of queries times keys outlives the steps that stand around it; Dao et al. (2022).
///
/// Nodes are of three kinds: those that backward() made, those that are made of the forward pass
/// alone although backward() made them (a derivative's factors), and the rest; the second are
/// treated as the rest.
struct recomputer {
  // Of the ops behind one value, and of the kept values that they read; more are not free.
  static constexpr int max_ops = 12, max_reads = 2;

  graph& g;
  const bool* live;
  const bool* seldom;   ///< see find_seldom()
  int* moved;           ///< per node: its new number, on return
  bool* varies;         ///< per node: not made of constants and sizes alone
  bool* late;           ///< per node: made by backward() of gradients
  bool* read;           ///< per node: kept for backward
  bool* there;          ///< per node: at hand during backward
  int* again;           ///< per node: the ops that compute it again; 0: it is not
  int* reads;           ///< per node: the kept values that those read, max_reads or -1
  int* due;             ///< per late node: the last product or other library step before it
  int* apart;           ///< per node: its copy for library steps, a product's only one, or -1
  int* fused;           ///< per node: its latest copy for maps and rows, or -1
  int* fused_at;        ///< per node: the gradient that one waits for
  node* old = nullptr;  ///< the nodes from the first late one on
  int first = 0;

  /// True when nodes have been added: moved[i] is where node i is then.
  [[gnu::cold]] constexpr bool run() {
    const int count = g.count;
    if (!classify()) return false;
    const owned_array<node> memory(static_cast<std::size_t>(count - first));
    old = memory.get();
    for (int i = first; i < count; ++i)
      if (live[i]) old[i - first] = g.nodes[i];
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
  constexpr bool is_alias(const node& n) const { return n.op->kind == op_kind::alias; }
  constexpr bool elementwise(const node& n) const {
    return n.op->kind == op_kind::map && !n.op->impure && !n.op->check && n.segment == 0 &&
           n.after[0] < 0;
  }
  /// A batch of products, each larger than its factors; a size that is not known yet counts as
  /// large.
  [[gnu::cold]] constexpr bool swells(const node& n) const {
    if (!n.op->product || n.op->takes_axes == 0 || n.rank < 3 || n.segment != 0 || n.after[0] >= 0)
      return false;
    const shape in[] = {g.nodes[n.in[0]].dims_shape(), g.nodes[n.in[1]].dims_shape()};
    const shape loops = n.op->loops(in, n.dims_shape(), n.attr);
    const extent inner = loops[loops.rank - 1];
    const auto larger = [&](extent e) { return !is_known(e) || e > inner; };
    return is_known(inner) && larger(n.dims[n.rank - 2]) && larger(n.dims[n.rank - 1]);
  }
  /// One value per row, or fewer: to keep it costs nothing.
  static constexpr bool small(const node& n) { return n.rank < 2 || n.dims[n.rank - 1] == 1; }

  /// False when nothing is to be done.
  [[gnu::cold]] constexpr bool classify() {
    first = g.count;
    for (int i = 0; i < g.count; ++i) {
      if (!live[i]) continue;
      const node& n = g.nodes[i];
      late[i] = read[i] = there[i] = false;
      again[i] = 0;
      for (int k = 0; k < max_reads; ++k) reads_of(i)[k] = -1;
      due[i] = apart[i] = fused[i] = fused_at[i] = -1;
      varies[i] = is<op::input>(n) || is<op::scalar>(n) || n.op->impure;
      for (int k = 0; k < n.arity; ++k) varies[i] |= varies[n.in[k]];
      if (!n.gradient || !varies[i]) continue;
      if (first == g.count) first = i;
      late[i] = !elementwise(n) && !is_alias(n);
      for (int k = 0; k < n.arity; ++k) late[i] |= late[n.in[k]];
      for (int k = 0; late[i] && !(seldom && seldom[i]) && k < n.arity; ++k) read[n.in[k]] = true;
    }
    for (int i = g.count - 1; i >= 0; --i)
      if (live[i] && read[i] && is_alias(g.nodes[i])) read[g.nodes[i].in[0]] = true;
    bool any = false;
    for (int i = 0; i < g.count; ++i)
      if (live[i] && !late[i]) any |= find_again(i) && read[i];
    return any;
  }
  [[gnu::cold]] constexpr bool find_again(int i) {
    const node& n = g.nodes[i];
    bool all = true;
    int ops = is_alias(n) ? 0 : 1;
    for (int k = 0; k < n.arity; ++k) {
      all &= there[n.in[k]];
      ops += again[n.in[k]];
    }
    const bool can = is_alias(n) ? again[n.in[0]] > 0 : (elementwise(n) && !small(n)) || swells(n);
    if (can && all && varies[i] && ops <= max_ops && find_reads(i)) again[i] = ops;
    // What sizes and constants alone decide is there for all calls.
    there[i] = again[i] > 0 || read[i] || !varies[i] || small(n) || (is_alias(n) && all);
    return again[i] > 0;
  }

  constexpr int* reads_of(int i) const { return reads + max_reads * i; }
  /// False when they are too many. Products that swell are worth any.
  [[gnu::cold]] constexpr bool find_reads(int i) {
    const node& n = g.nodes[i];
    bool few = true;
    for (int k = 0; k < n.arity && !swells(n); ++k) {
      int from = n.in[k];
      if (again[from] > 0) {
        for (int j = 0; j < max_reads; ++j) few &= add_read(i, reads_of(from)[j]);
        continue;
      }
      while (is_alias(g.nodes[from])) from = g.nodes[from].in[0];
      if (varies[from] && !small(g.nodes[from])) few &= add_read(i, from);
    }
    return few;
  }
  [[gnu::cold]] constexpr bool add_read(int i, int value) {
    if (value < 0) return true;
    for (int k = 0; k < max_reads; ++k) {
      int& known = reads_of(i)[k];
      if (known < 0) known = value;
      if (known == value) return true;
    }
    return false;
  }

  // Copies come first; dead nodes are left out.
  [[gnu::cold]] constexpr void emit(int i) {
    moved[i] = -1;
    if (!live[i]) return;
    const node& from = old[i - first];
    const bool library = from.op->kind == op_kind::library;
    int wait = -1, in[3] = {-1, -1, -1};
    for (int k = 0; late[i] && k < from.arity; ++k)
      if (late[from.in[k]] && due[from.in[k]] > wait) wait = due[from.in[k]];
    for (int k = 0; k < from.arity; ++k)
      in[k] =
          wait >= 0 && again[from.in[k]] > 0 ? copy(from.in[k], wait, library) : moved[from.in[k]];
    moved[i] = add(from);
    node& n = g.nodes[moved[i]];
    for (int k = 0; k < n.arity; ++k) n.in[k] = in[k];
    for (int& before : n.after)
      if (before >= 0) before = moved[before];
    if (!late[i]) return;
    const bool same = is_alias(n) && wait == n.in[0];
    due[i] = library || same ? moved[i] : wait;
  }
  [[gnu::cold]] constexpr int add(const node& n) {
    g.segment = n.segment;
    return g.add(n);
  }

  /// Node i computed again when gradient `wait` is there. Library steps share one copy; maps and
  /// rows, into which it fuses, do so where they wait for the same.
  [[gnu::cold]] constexpr int copy(int i, int wait, bool library) {
    if (again[i] == 0) return moved[i];
    const node& from = i < first ? g.nodes[i] : old[i - first];
    const bool product = from.op->kind == op_kind::library;
    library |= product;
    if (library && apart[i] >= 0) return apart[i];
    if (!library && fused_at[i] == wait) return fused[i];
    node n = from;
    const bool same = product || (library && is_alias(n));
    for (int k = 0; k < n.arity; ++k) n.in[k] = copy(n.in[k], wait, same);
    n.needs_grad = false;
    n.gradient = true;
    if (!is_alias(n)) n.after[0] = wait;
    const int made = add(n);
    if (library) return apart[i] = made;
    fused_at[i] = wait;
    return fused[i] = made;
  }
};

[[gnu::cold]] constexpr void recompute(pass_state& s) {
  const std::size_t n = s.room();
  const owned_array<int> moved_memory(n), number_memory((5 + recomputer::max_reads) * n);
  const owned_array<bool> flag_memory(4 * n);
  int* const moved = moved_memory.get();
  int* const numbers = number_memory.get();
  bool* const flags = flag_memory.get();
  const owned_array<bool> seldom = s.find_seldom();
  recomputer r{s.g,         s.live,          seldom.get(),    moved,          flags,
               flags + n,   flags + 2 * n,   flags + 3 * n,   numbers,        numbers + 5 * n,
               numbers + n, numbers + 2 * n, numbers + 3 * n, numbers + 4 * n};
  if (r.run()) s.renumber(moved);
}

}  // namespace xla::detail
