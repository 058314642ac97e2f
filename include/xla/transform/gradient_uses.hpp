// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass that finds nodes that only serve the gradient of one parameter; calls in which that
// parameter is frozen omit them. It removes nothing itself: run/plan/absent.hpp does, per call.

#include "xla/transform/pass.hpp"

namespace xla::detail {

/// Finds the nodes of a captured graph that exist for one parameter's gradient alone: a call in
/// which that parameter is frozen omits them, as the body would have done. They are the new values
/// of the parameter and its optimizer state, if these depend on the gradient. One sweep propagates
/// whose gradient a value depends on, and records values that mix it with others.
class gradient_user {
 public:
  constexpr gradient_user(graph& g, const graph_roots& roots) : g_(g), roots_(roots) {}
  gradient_user(const gradient_user&) = delete;

  [[gnu::cold]] constexpr void run() {
    const auto n = static_cast<std::size_t>(
        g_.loop_count != 0 ? g_.rules_of_loops->count_repeated(g_) : g_.count);
    const owned_array<int> from(n), current(static_cast<std::size_t>(g_.slot_count) + 1);
    const owned_array<bool> updated(n);
    from_ = from.get();
    updated_ = updated.get();
    current_ = current.get();
    for (int s = 0; s < g_.slot_count; ++s) current_[s] = g_.slots[s].leaf;
    for (int i = 0; i < g_.count; ++i) {
      updated_[i] = false;
      from_[i] = g_.nodes[i].arity == 0 ? nobody : look(i);
    }
    for (int i = 0; i < roots_.result_count; ++i) mix(read(roots_.results[i]));
    for (int i = 0; i < roots_.write_count; ++i) find_owner(roots_.writes[i]);
  }

 private:
  friend class loop_gradient_user;
  static constexpr int nobody = -1;

  constexpr void mix(int slot) {
    if (slot != nobody) g_.slots[slot].mixed = true;
  }
  /// The parameter whose gradient a value depends on. A parameter's new value counts as nobody's
  /// from here on, because in calls in which it is frozen it is the old one.
  constexpr int read(int i) {
    if (updated_[i]) g_.nodes[i].op = &builtin<op::updated>;
    return from_[i];
  }
  [[gnu::cold]] constexpr int look(int i) {
    const node& n = g_.nodes[i];
    const int arity = n.arity;
    int from = nobody;
    if (g_.loop_count != 0 && g_.rules_of_loops->gradient_use(*this, i, from)) return from;
    const int* const in = g_.inputs(n);
    from = read(in[0]);
    for (int k = 1; k < arity; ++k) {
      const int other = read(in[k]);
      if (other == nobody || other == from) continue;
      if (from == nobody) {
        from = other;
        continue;
      }
      mix(from);
      mix(other);
    }
    if (n.op->kind != op_kind::alias) return from;
    const bool part = is<op::gradient_part>(n);
    if (!part && !is<op::detach>(n)) return from;
    const auto of = n.attributes<op::of_slot>();
    if (of.slot < 0) return from;
    if (part) return nobody;
    return of.gradient ? gradient(of, from) : bind(i, of.slot, from);
  }
  [[gnu::cold]] constexpr int gradient(const op::of_slot::attributes& of, int from) {
    slot& s = g_.slots[of.slot];
    if (s.kind == slot_kind::inner || (s.kind == slot_kind::tensor && s.given)) return nobody;
    if (!of.replaces) return of.slot;
    if (from == nobody) s.given |= s.kind == slot_kind::cell;
    else if (from != of.slot) mix(from);
    return nobody;
  }
  [[gnu::cold]] constexpr int bind(int i, int slot, int from) {
    if (g_.slots[slot].kind == slot_kind::tensor || g_.decider(slot) != slot) return from;
    const int before = current_[slot];
    current_[slot] = i;
    if (g_.nodes[i].in[0] == before) {
      updated_[i] = updated_[before];
      return from_[before];
    }
    if (from == nobody) return nobody;
    const int owner = g_.slots[slot].owner < 0 ? slot : g_.slots[slot].owner;
    if (from != owner) {
      mix(from);
      return nobody;
    }
    // Its value at entry replaces it, so nothing else may have been written before.
    if (!is_at_entry(slot, before, owner)) mix(from);
    updated_[i] = slot == owner;
    return slot == owner ? nobody : from;
  }
  /// Whether a slot's value is that of entry, apart from changes by its owner's gradient.
  constexpr bool is_at_entry(int slot, int value, int owner) const {
    return value == g_.slots[slot].leaf || updated_[value] || from_[value] == owner;
  }
  [[gnu::cold]] constexpr void find_owner(write& w) {
    const slot& s = g_.slots[w.slot];
    if (w.gradient) {
      w.owner = s.given ? nobody : g_.decider(w.slot);
    } else if (s.kind == slot_kind::cell) {
      if (g_.loop_count != 0 && g_.rules_of_loops->row_use(*this, w)) return;
      if (updated_[w.value]) w.owner = w.slot;
      else if (s.owner >= 0) w.owner = from_[w.value];
    } else {
      mix(read(w.value));
    }
  }

  graph& g_;
  const graph_roots& roots_;
  int* from_ = nullptr;      // per node: the parameter on whose gradient it depends, or nobody
  bool* updated_ = nullptr;  // per node: a parameter's new value, which depends on its gradient
  int* current_ = nullptr;   // per slot: its current value
  int rows_ = 0;             // how many of the last entries of from_ rows of repeats have used
};

[[gnu::cold]] constexpr void find_gradient_uses(pass_state& s) {
  bool any = false;
  for (int i = 0; i < s.g.slot_count && !any; ++i)
    any = s.g.slots[i].collected || s.g.slots[i].grad_leaf >= 0;
  if (any) gradient_user(s.g, s.roots).run();
}

}  // namespace xla::detail
