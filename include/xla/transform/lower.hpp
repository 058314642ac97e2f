// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns a graph after all passes into a program: numbered values and ordered steps. The compiler
// calls it for compiled functions, run/plan/lowered.hpp for traced graphs.

#include "xla/transform/fuse.hpp"
#include "xla/transform/micro_op.hpp"
#include "xla/transform/pass.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// Lists of nodes in the order of insertion; a node is in one list.
class node_lists {
 public:
  [[gnu::cold]] constexpr node_lists(int lists, std::size_t nodes)
      : first_(static_cast<std::size_t>(lists) + 1),
        last_(static_cast<std::size_t>(lists) + 1),
        next_(nodes) {
    for (int k = 0; k < lists; ++k) first_.get()[k] = -1;
  }
  /// Whether the node is the list's first.
  constexpr bool add(int list, int node) {
    int& first = first_.get()[list];
    int* const next = next_.get();
    int* const last = last_.get();
    const bool opens = first < 0;
    (opens ? first : next[last[list]]) = node;
    next[node] = -1;
    last[list] = node;
    return opens;
  }
  constexpr int first(int list) const { return first_.get()[list]; }
  constexpr int after(int node) const { return next_.get()[node]; }

 private:
  owned_array<int> first_, last_;  // per list
  owned_array<int> next_;          // per node
};

/// The graph after all passes -> program: values and steps numbered in the order of execution.
class lowering {
 public:
  [[gnu::cold]] constexpr lowering(pass_state& s, program_builder& out)
      : s_(placed(s)),
        g_(s.g),
        roots_(s.roots),
        out_(out),
        live_(s.live),
        region_of_(s.region_of),
        values_(s.room()),
        locals_(s.room()),
        stamps_(s.room()),
        in_region_(s.region_count, s.room()),
        value_of_(values_.get()),
        local_(locals_.get()),
        stamp_(stamps_.get()) {}
  lowering(const lowering&) = delete;

  [[gnu::cold]] constexpr void run() {
    if (g_.loop_count != 0) return g_.rules_of_loops->lower(*this);
    number_values();
    add_steps();
    finish();
  }

  /// Numbers the step of a node, or of its region.
  [[gnu::always_inline]] constexpr void add_step(int i) {
    if (const int r = region_of_[i]; r >= 0 && !better_alone(i, s_.regions[r]))
      add_region(r, s_.regions[r]);
    else add_library(i);
  }

 private:
  friend struct loop_lowering;
  friend struct repeat_lowering;
  static constexpr pass_state& placed(pass_state& s) {
    s.place_alone();
    return s;
  }
  constexpr int root(int node) const { return s_.to[node]; }

  // A node is a value of the program unless it lives in registers only.
  [[gnu::cold]] constexpr void number_values() {
    const owned_array<bool> outside(s_.room());
    find_outside(outside.get());
    for (int i = 0; i < g_.count; ++i) {
      value_of_[i] = -1;
      if (live_[i] && (region_of_[i] < 0 || outside.get()[i])) number_value(i);
    }
  }
  /// Marks nodes that are read outside of the region that computes them.
  [[gnu::cold]] constexpr void find_outside(bool* outside) const {
    for (int i = 0; i < g_.count; ++i) outside[i] = false;
    for (int i = 0; i < roots_.result_count; ++i) outside[root(roots_.results[i])] = true;
    for (int i = 0; i < roots_.write_count; ++i) outside[root(roots_.writes[i].value)] = true;
    for (int i = g_.after_leaves(); i < g_.count; ++i) {
      const node& n = g_.nodes[i];
      const int arity = n.arity, r = region_of_[i];
      if (arity == 0 || !live_[i]) continue;
      const int* const inputs = g_.inputs(n);
      for (int k = 0; k < arity; ++k)
        if (const int in = inputs[k]; r < 0 || r != region_of_[in]) outside[in] = true;
    }
  }
  [[gnu::cold]] constexpr void number_value(int i) {
    value_of_[i] = out_.count.values + skipped_;
    node& v = out_.values[out_.count.values++] = g_.nodes[i];
    v.needs_grad = false;
    const int arity = v.arity;
    if (arity > few_inputs) v.in[0] = add_inputs(v);
    else
      for (int k = 0; k < arity; ++k) v.in[k] = value_of_[v.in[k]];
  }
  constexpr node& stored(int value) const {
    if (!__builtin_is_constant_evaluated()) return out_.values[value];
    return out_.values[index_of_value(out_, out_.count.rows, value)];
  }
  /// Lists the values that a node of the graph reads; returns the position of the first.
  [[gnu::cold]] constexpr int add_inputs(const node& n) {
    const int first = out_.count.inputs, arity = n.arity;
    const int* const in = g_.inputs(n);
    for (int k = 0; k < arity; ++k) out_.inputs[out_.count.inputs++] = value_of_[in[k]];
    return first;
  }

  /// Steps in the order of their stages; nodes of a region stay in their order.
  [[gnu::cold]] constexpr void add_steps() {
    const int stages = count_stages();
    node_lists in_stage(stages, s_.room());
    order_steps(in_stage);
    for (int s = 0; s < stages; ++s)
      for (int i = in_stage.first(s); i >= 0; i = in_stage.after(i)) add_step(i);
  }
  [[gnu::cold]] constexpr int count_stages() const {
    int last = 0;
    for (int i = g_.after_leaves(); i < g_.count; ++i)
      if (live_[i] && s_.stage_at(i) > last) last = s_.stage_at(i);
    return last + 1;
  }
  [[gnu::cold]] constexpr void order_steps(node_lists& in_stage) {
    for (int i = 0, first = g_.after_leaves(); i < g_.count; ++i) {
      stamp_[i] = -1;
      if (i < first || !live_[i] || !makes_step(i)) continue;
      const int r = region_of_[i];
      if (r < 0 || in_region_.add(r, i)) in_stage.add(s_.stage_at(i), i);
    }
  }

  // A sum of columns, or a lookup by index, that is not fused runs faster by its own kernel.
  [[gnu::cold]] constexpr bool better_alone(int first, const region& r) const {
    const node& n = g_.nodes[first];
    return r.nodes == 1 && (sums_columns(n) || n.op->kind == op_kind::library);
  }
  constexpr bool makes_step(int i) const {
    const op_kind k = g_.nodes[i].op->kind;
    return k == op_kind::map || k == op_kind::reduce || k == op_kind::library;
  }

  [[gnu::cold]] constexpr void add_library(int i) {
    const node& n = g_.nodes[i];
    step s;
    s.value = value_of_[i];
    s.check = n.op->check;
    s.exchanges = n.op->exchanges;
    s.inputs = n.arity;
    s.first_input = n.arity > few_inputs ? stored(s.value).in[0] : add_inputs(n);
    s.first_output = out_.count.outputs;
    out_.outputs[out_.count.outputs++] = s.value;
    for (int k = i + 1; n.op->results > 1 && k < g_.count; ++k)
      if (live_[k] && is<op::output>(g_.nodes[k]) && g_.nodes[k].in[0] == i)
        out_.outputs[out_.count.outputs++] = value_of_[k];
    s.outputs = out_.count.outputs - s.first_output;
    out_.steps[out_.count.steps++] = s;
  }

  constexpr bool invariant(const node& input, const region& r) const {
    const int rank = input.rank;
    int ones = 0;
    while (ones < rank && input.dims[ones] == 1) ++ones;
    if (ones == rank) return true;
    return r.reduces && input.dims[rank - 1] == 1 && r.space.dims[r.space.rank - 1] != 1;
  }

  /// The rank of an operand among those of a commutative op: computed in the region first, then
  /// read by element, by row, and once per call. It depends on the structure alone, not on the
  /// order of nodes in the graph, so that regions of equal structure get equal keys.
  [[gnu::cold]] constexpr int precedence(int in, int index, const region& r) const {
    if (region_of_[in] == index) return 0;
    const node& n = g_.nodes[in];
    if (!invariant(n, r)) return same_dims(n, r.space) ? 1 : 2;
    return n.rank > 0 && n.rank == r.space.rank && r.reduces ? 3 : 4;
  }
  [[gnu::cold]] constexpr void order_operands(int index, const region& r) {
    for (int i = in_region_.first(index); i >= 0; i = in_region_.after(i)) {
      node& n = g_.nodes[i];
      if (!n.op->commutative) continue;
      const int first = precedence(n.in[0], index, r);
      if (first == 0 || first <= precedence(n.in[1], index, r)) continue;
      const int t = n.in[0];
      n.in[0] = n.in[1];
      n.in[1] = t;
    }
  }

  // The key: inputs in the order of their first use, then ops in program order.
  [[gnu::cold]] constexpr void add_region(int index, const region& r) {
    step s;
    s.kind = r.reduces ? step_kind::row : step_kind::map;
    s.first_input = out_.count.inputs;
    s.first_output = out_.count.outputs;
    s.first_word = out_.count.words;
    s.space = out_.count.spaces;
    out_.spaces[out_.count.spaces++] = r.space;
    order_operands(index, r);
    add_region_inputs(index, r);
    s.inputs = out_.count.inputs - s.first_input;
    s.ops = add_region_ops(index, s);
    s.words = out_.count.words - s.first_word;
    s.outputs = out_.count.outputs - s.first_output;
    s.kernel = key_of(s);
    out_.steps[out_.count.steps++] = s;
  }
  [[gnu::cold]] constexpr void add_region_inputs(int index, const region& r) {
    const int first = out_.count.words;
    for (int i = in_region_.first(index); i >= 0; i = in_region_.after(i)) {
      const node& n = g_.nodes[i];
      const int arity = n.arity;
      for (int k = 0; k < arity; ++k) {
        const int in = n.in[k];
        if (region_of_[in] == index || stamp_[in] == index) continue;
        stamp_[in] = index;
        local_[in] = out_.count.words - first;
        out_.inputs[out_.count.inputs++] = value_of_[in];
        const node& from = g_.nodes[in];
        const bool index = from.type == dtype::int64 && r.main != dtype::int64;
        add_word(kernel::micro_op::input_word(from.type, invariant(from, r), index), nullptr);
      }
    }
  }
  [[gnu::cold]] constexpr int add_region_ops(int index, const step& s) {
    int ops = 0;
    for (int i = in_region_.first(index); i >= 0; i = in_region_.after(i), ++ops) {
      const node& n = g_.nodes[i];
      const op_info& op = *n.op;
      const int arity = n.arity, value = value_of_[i];
      const bool column = sums_columns(n);
      std::uint64_t word = kernel::micro_op::op_word(op.id, n.type, value >= 0,
                                                     op.kind == op_kind::reduce && !column, column);
      for (int k = 0; k < arity; ++k) word = kernel::micro_op::with(word, k, local_[n.in[k]]);
      if (value >= 0) out_.outputs[out_.count.outputs++] = value;
      local_[i] = out_.count.words - s.first_word;
      add_word(word, &op);
    }
    return ops;
  }
  constexpr void add_word(std::uint64_t word, const op_info* op) {
    if (out_.word_ops) out_.word_ops[out_.count.words] = op;
    out_.words[out_.count.words++] = word;
  }

  /// The index of the region's key among the distinct ones; a new key is added.
  [[gnu::cold]] constexpr int key_of(step& s) {
    const bool row = s.kind == step_kind::row;
    for (int k = 0; k < out_.count.keys; ++k) {
      const distinct_key& d = out_.keys[k];
      if (d.count != s.words || d.row != row) continue;
      bool same = true;
      for (int w = s.words - 1; same && w >= 0; --w)
        same = out_.words[d.first + w] == out_.words[s.first_word + w];
      if (same) {
        out_.count.words = s.first_word;
        s.first_word = d.first;
        return k;
      }
    }
    out_.keys[out_.count.keys] = {s.first_word, s.words, row};
    return out_.count.keys++;
  }

  [[gnu::cold]] constexpr void finish() {
    bool collects = false, always = false;
    for (int i = 0; i < g_.slot_count; ++i) {
      collects |= g_.slots[i].collected;
      always |= g_.slots[i].collected && g_.slots[i].given;
    }
    for (int i = 0; i < roots_.result_count; ++i) {
      const int v = out_.results[out_.count.results++] = value_of_[root(roots_.results[i])];
      if (!collects && s_.needs_grad[i]) stored(v).needs_grad = true;
    }
    for (int i = 0; i < g_.slot_count; ++i) {
      const slot& s = g_.slots[i];
      if (!g_.outside(i) && s.left_in < 0) continue;
      program_slot p;
      p.kind = s.kind;
      if (s.leaf >= 0) p.leaf = value_of_[s.leaf];
      if (s.grad_leaf >= 0) p.grad_leaf = value_of_[s.grad_leaf];
      p.clears_gradient = s.state == grad_state::absent;
      p.requires_grad = s.requires_grad_set;
      p.left_in = s.left_in;
      p.origin = s.origin;
      p.from_entry = s.from_entry;
      if (s.left_in >= 0) out_.slots[s.left_in].writes_value = true;
      p.mixed = s.mixed;
      p.entangled = s.entangled;
      if (!s.given && s.collected) p.use = gradient_use::collected;
      else if (!s.given && s.reads) p.use = gradient_use::read;
      p.not_alone = always;
      p.sharded_as = g_.slots[s.owner < 0 ? i : s.owner].sharded_as;
      out_.slots[out_.count.slots++] = p;
    }
    for (int i = 0; i < roots_.write_count; ++i) {
      write& w = out_.writes[out_.count.writes++] = roots_.writes[i];
      if (!g_.outside(w.slot)) w.slot = g_.number_in_program(w.slot);
      w.value = value_of_[root(w.value)];
      program_slot& s = out_.slots[w.slot];
      (w.gradient ? s.writes_gradient : s.writes_value) = true;
    }
    for (int i = 0; i < g_.sizes.symbol_count; ++i)
      out_.symbols[out_.count.symbols++] = g_.sizes.symbols[i];
    for (int i = 0; i < g_.sizes.equality_count; ++i)
      out_.equalities[out_.count.equalities++] = g_.sizes.equalities[i];
  }

  pass_state& s_;
  graph& g_;
  const graph_roots& roots_;
  program_builder& out_;
  const bool* const live_;
  const int* const region_of_;
  owned_array<int> values_, locals_, stamps_;
  node_lists in_region_;
  int* const value_of_;  // per node: its number in the program, or -1
  int* const local_;     // per node: its number in the region that reads or computes it
  int* const stamp_;     // per node: the region that last read it
  int skipped_ = 0;      // the values so far that are not stored: see stored_row
};

}  // namespace xla::detail
