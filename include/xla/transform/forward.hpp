// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the part of a compiled function's graph that a backward() outside needs. Capture finds it
// in the compiler, run/call/taped_call.hpp runs it again; a backward() inside a function does not
// need it.

#include "xla/graph/graph.hpp"

namespace xla::detail {

/// Whether a compiled function's results keep what a backward() outside needs. With xla::runtime,
/// which has all ops, the graph for that is mere data. With headers alone it instantiates them, and
/// so must be requested, equally in all units of a program.
#if !defined(XLA_COMPILED_BACKWARD)
#if defined(XLA_EXTERN_RUNTIME)
#define XLA_COMPILED_BACKWARD 1
#else
#define XLA_COMPILED_BACKWARD 0
#endif
#endif
inline constexpr bool keeps_forward = XLA_COMPILED_BACKWARD;

/// Copies the nodes that results depend on, as the body made them, for a backward() outside. Its
/// last nodes stand for the results, each with its value as input, and say whether gradients may
/// reach parameters from there (needs_grad) or tensors among the arguments (input_grad). A loop's
/// segment is the first node of its body, and its first size is loop_range::every.
class forward_finder {
 public:
  constexpr forward_finder(const graph& g, const int* results, int count)
      : g_(g), results_(results), result_count_(count) {}
  forward_finder(const forward_finder&) = delete;
  constexpr ~forward_finder() { delete[] to_; }

  /// The number of nodes; 0 if there are none, because the body calls backward() itself, returns no
  /// value with a gradient, or has a loop that draws or exchanges.
  constexpr int find() {
    bool any = false;
    for (int i = 0; i < result_count_; ++i) any |= is_fraction(g_.nodes[results_[i]].type);
    for (int i = 0; i < g_.slot_count && any; ++i)
      any = !g_.slots[i].collected && g_.slots[i].grad_leaf < 0;
    for (int i = 0; i < g_.count && any; ++i)
      any = g_.nodes[i].loop == 0 || !(g_.nodes[i].op->impure || g_.nodes[i].op->exchanges);
    return any ? mark() : 0;
  }
  /// And how many inputs of nodes are in lists.
  constexpr int listed() const {
    int all = 0;
    for (int i = 0; g_.lists.count > 0 && i < g_.count; ++i)
      if (to_[i] >= 0 && g_.nodes[i].arity > few_inputs) all += g_.nodes[i].arity;
    return all;
  }
  constexpr void copy(node* to, int* lists) const {
    int listed = 0;
    for (int i = 0; i < g_.count; ++i) {
      if (to_[i] < 0) continue;
      node& n = *to++ = g_.nodes[i];
      const int* const from = g_.inputs(g_.nodes[i]);
      int* in = n.in;
      if (n.arity > few_inputs) {
        in = lists + (n.in[0] = listed);
        listed += n.arity;
      }
      for (int k = 0; k < n.arity; ++k) in[k] = to_[from[k]];
      if (is<op::detach>(n)) name_leaf(n);
      if (n.op->loops_steps) name_range(n);
    }
    for (int i = 0; i < result_count_; ++i) {
      const node& from = g_.nodes[results_[i]];
      node& n = *to++ = node{};
      n.op = &builtin<op::compiled_result>;
      n.in[0] = to_[results_[i]];
      n.needs_grad = from.needs_grad;
      n.input_grad = from.input_grad;
    }
  }

 private:
  constexpr void name_range(node& n) const {
    const loop_range& of = g_.rules_of_loops->range(g_, n);
    int first = of.begin;
    while (to_[first] < 0) ++first;
    n.segment = to_[first];
    n.dims[0] = of.every;
  }
  // A slot that is no argument's at the end collects gradients for nobody, if it does so in all
  // calls; otherwise it only ends them.
  constexpr void name_leaf(node& n) const {
    const int slot = slot_of_value(n), number = slot < 0 ? -1 : g_.number_in_program(slot);
    if (slot < 0 || number == slot) return;
    auto as = n.attributes<op::detach>();
    as.slot = number;
    n.set<op::detach>(as);
    if (number < 0) n.input_grad = false;
  }
  // Random numbers come after those of all earlier draws, used or not.
  constexpr int mark() {
    to_ = new int[static_cast<std::size_t>(g_.count)];
    for (int i = 0; i < g_.count; ++i) to_[i] = g_.nodes[i].op->impure ? 0 : -1;
    bool wanted = false;
    for (int i = 0; i < result_count_; ++i) {
      to_[results_[i]] = 0;
      wanted |= g_.nodes[results_[i]].needs_grad || g_.nodes[results_[i]].input_grad;
    }
    for (int i = g_.count - 1; i >= 0; --i) {
      const int* const in = g_.inputs(g_.nodes[i]);
      for (int k = 0; to_[i] == 0 && k < g_.nodes[i].arity; ++k) to_[in[k]] = 0;
    }
    int count = 0;
    for (int i = 0; i < g_.count; ++i) {
      if (to_[i] < 0) continue;
      to_[i] = count++;
      wanted &= !is<op::data>(g_.nodes[i]);
    }
    return wanted ? count + result_count_ : 0;
  }

  const graph& g_;
  const int* results_;
  int result_count_;
  int* to_ = nullptr;  // per node: its number in the copy; -1: it is not there
};

}  // namespace xla::detail
