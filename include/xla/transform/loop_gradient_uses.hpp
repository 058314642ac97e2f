// SPDX-License-Identifier: Apache-2.0
#pragma once

// The analysis of gradient_uses.hpp inside loops: which carries exist only for one parameter's
// gradient. It is reached through loop_rules, so that programs without loops contain none of it.

#include <cstddef>

#include "xla/base/owned_array.hpp"
#include "xla/graph/loops.hpp"
#include "xla/transform/gradient_uses.hpp"

namespace xla::detail {

/// The same in loops. A carry of a parameter, of its gradient or of its optimizer state has an
/// owner if each step computes it from that parameter's gradient: in calls in which the parameter
/// is frozen it keeps its initial value, also after the loop.
class loop_gradient_user {
 public:
  constexpr loop_gradient_user(gradient_user& in, int index)
      : of(in), g(in.g_), i(index), n(in.g_.nodes[index]) {}

  /// For a write of a row of a repeat's result.
  [[gnu::cold]] static constexpr bool row_use(gradient_user& in, write& w) {
    const int loop = in.g_.nodes[w.value].loop;
    if (loop == 0 || !repeat_of(in.g_, loop)) return false;
    const slot& s = in.g_.slots[w.slot];
    int from = in.from_[w.value];
    if (from != nobody) from = in.from_[from + s.row];
    const int owner = s.owner < 0 ? w.slot : s.owner;
    if (from == nobody) return true;
    if (from == owner) w.owner = owner;
    if (from != owner || !in.is_at_entry(w.slot, in.current_[w.slot], owner)) in.mix(from);
    return true;
  }
  [[gnu::cold]] static constexpr bool use(gradient_user& in, int index, int& from) {
    const node& n = in.g_.nodes[index];
    const op_kind kind = n.op->kind;
    if (const loop_range* const repeat = repeat_of(in.g_, n.loop)) {
      from = loop_gradient_user(in, index).of_rows(*repeat);
      return true;
    }
    if (kind != op_kind::library && kind != op_kind::output && !is<op::detach>(n)) return false;
    loop_gradient_user at(in, index);
    if (is<op::loop>(at.n)) at.find_owners();
    else if (is<op::carry>(at.n)) from = at.of_carry();
    else if (is<op::last_step>(at.n)) from = at.of_last();
    else if (is<op::repeat_result>(at.n)) from = at.of_row();
    else if (const int made = at.slot_from_loop(); made >= 0) from = at.bind(made);
    else return false;
    return true;
  }

 private:
  static constexpr int nobody = gradient_user::nobody;

  constexpr int owner_of_slot(int slot) const {
    const int owner = g.slots[slot].owner;
    return owner < 0 ? slot : owner;
  }
  constexpr int of_carry() const {
    const int from = of.read(n.in[0]);
    const auto a = n.attributes<op::carry>();
    return a.gradient() ? nobody : from;
  }
  /// A node of a repeat belongs to another parameter in each row: its entry names the first row's,
  /// and those of the others follow; or it is nobody's in all rows.
  constexpr int of_rows(const loop_range& repeat) const {
    const int rows = static_cast<int>(repeat.trip);
    if (is<op::repeat_input>(n)) return of_inputs(rows);
    if (is<op::detach>(n) && n.attributes<op::of_slot>().gradient)
      return of_gradients(rows, repeat.stride);
    if (is<op::gradient_part>(n)) return nobody;
    const int* const in = g.inputs(n);
    const int begin = g.count + of.rows_;
    int all = nobody;
    for (int k = 0; k < n.arity; ++k) all = joined(all, in[k], rows, begin);
    return all;
  }
  constexpr int add_rows(int rows) const {
    const int first = g.count + of.rows_;
    of.rows_ += rows;
    return first;
  }
  constexpr int of_inputs(int rows) const {
    const int* const in = g.inputs(n);
    const int first = add_rows(rows);
    bool any = false;
    for (int row = 0; row < rows; ++row)
      any |= (of.from_[first + row] = of.read(in[row])) != nobody;
    if (any) return first;
    of.rows_ -= rows;
    return nobody;
  }
  constexpr int of_gradients(int rows, int stride) const {
    const int first = add_rows(rows);
    auto to = n.attributes<op::of_slot>();
    const int from = of.from_[n.in[0]];
    const bool by_row = differs(n.in[0], from);
    const int slot = to.slot;
    for (int row = 0; row < rows; ++row) {
      to.slot = slot + row * stride;
      of.from_[first + row] = of.gradient(to, by_row ? of.from_[from + row] : from);
    }
    return first;
  }
  /// For a node that belongs to a repeat, or to none and so is the same in all rows.
  constexpr int row_of(int node, int row) const {
    const int from = of.from_[node];
    return differs(node, from) ? of.from_[from + row] : from;
  }
  constexpr bool differs(int node, int from) const {
    return from != nobody && repeat_of(g, g.nodes[node].loop);
  }
  /// Rows that another input also has: those of one serve both if the other has none. Entries from
  /// `begin` on are this node's own.
  constexpr int joined(int all, int input, int rows, int begin) const {
    const bool inside = repeat_of(g, g.nodes[input].loop);
    const int other = inside ? of.from_[input] : of.read(input);
    if (other == nobody || (inside && other == all)) return all;
    if (inside && all == nobody) return other;
    const int first = all >= begin ? all : add_rows(rows);
    for (int row = 0; row < rows; ++row)
      of.from_[first + row] = joined(all == nobody ? nobody : of.from_[all + row],
                                     inside ? of.from_[other + row] : other);
    return first;
  }
  constexpr int joined(int from, int other) const {
    if (other == nobody || other == from) return from;
    if (from == nobody) return other;
    of.mix(from);
    of.mix(other);
    return from;
  }
  constexpr int of_row() const { return row_of(n.in[0], n.attributes<op::of_loop>().number); }
  /// If it has no owner, it depends on the values that its steps pass on, or on its initial value.
  constexpr int of_last() const {
    const auto a = n.attributes<op::last_step>();
    if (a.gradient()) return nobody;
    if (a.owner() >= 0) return a.owner() == a.slot() ? nobody : a.owner();
    const node& loop = g.nodes[n.in[0]];
    const int carries = loop.attributes<op::loop>().carries;
    const int next = of.from_[g.inputs(loop)[a.number]];
    return next != nobody ? next : of.from_[g.inputs(loop)[carries + a.number]];
  }

  /// The slot that becomes a carry, or holds the last step's value of it; or -1.
  constexpr int slot_from_loop() const {
    if (!is<op::detach>(n)) return -1;
    const node& from = g.nodes[n.in[0]];
    if (!is<op::carry>(from) && !is<op::last_step>(from)) return -1;
    const auto to = n.attributes<op::of_slot>();
    if (to.slot < 0 || to.gradient) return -1;
    const auto a = from.attributes<op::carry>();
    return a.slot() == to.slot && !a.gradient() ? a.slot() : -1;
  }
  constexpr int bind(int slot) const {
    const node& made = g.nodes[n.in[0]];
    int& current = of.current_[slot];
    const int from = of.read(n.in[0]);
    if (is<op::carry>(made)) {
      const bool entry = of.is_at_entry(slot, current, owner_of_slot(slot));
      current = entry ? g.slots[slot].leaf : i;
      return from;
    }
    current = i;
    of.updated_[i] = made.attributes<op::last_step>().owner() == slot;
    return from;
  }

  /// The carries of a recorded loop, including those that are not read.
  constexpr void find_owners() const {
    const auto about = n.attributes<op::loop>();
    const int* const in = g.inputs(n);
    if (n.arity > 2 * about.carries) of.mix(of.read(in[2 * about.carries]));
    const owned_array<int> owner(static_cast<std::size_t>(about.carries) + 1);
    for (int k = 0; k < about.carries; ++k) owner.get()[k] = nobody;
    for (int k = g.loops[about.number - 1].begin; k < i; ++k)
      if (is<op::carry>(g.nodes[k]) && given_by_loop(g.nodes[k]) == about.number)
        set_owner(g.nodes[k],
                  owner.get()[g.nodes[k].attributes<op::carry>().number] = find_owner(k, in));
    for (int k = i + 1; k < g.count; ++k)
      if (is<op::last_step>(g.nodes[k]) && g.nodes[k].in[0] == i)
        set_owner(g.nodes[k], owner.get()[g.nodes[k].attributes<op::last_step>().number]);
  }
  static constexpr void set_owner(node& n, int owner) {
    auto a = n.attributes<op::carry>();
    a.owned_from = owner + 1;
    n.set<op::carry>(a);
  }
  constexpr int find_owner(int carry, const int* in) const {
    const auto a = g.nodes[carry].attributes<op::carry>();
    const int from = of.read(in[a.number]);
    const int slot = a.slot();
    const bool outside = slot >= 0 && g.slots[slot].kind == slot_kind::cell;
    if (a.gradient()) return outside && !g.slots[slot].given ? slot : nobody;
    if (from == nobody || (outside && from == owner_of_slot(slot))) return from;
    if (from != of.from_[carry]) {
      of.mix(from);
      of.mix(of.from_[carry]);
    }
    return nobody;
  }

  gradient_user& of;
  graph& g;
  int i;
  const node& n;
};

}  // namespace xla::detail
