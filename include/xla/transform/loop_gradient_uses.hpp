// SPDX-License-Identifier: Apache-2.0
#pragma once

// What gradient_uses.hpp finds, inside loops: which carries exist only for one parameter's
// gradient. It is reached through loop_rules, so that programs without loops have none of it.

#include <cstddef>

#include "xla/base/owned_array.hpp"
#include "xla/graph/loops.hpp"
#include "xla/transform/gradient_uses.hpp"

namespace xla::detail {

/// The same in loops. A carry of a parameter, its gradient or what an optimizer keeps for it has an
/// owner where each step makes it of that parameter's gradient: where the parameter is frozen it
/// stays what it is at first, and so does what it is after the loop.
class loop_gradient_user {
 public:
  constexpr loop_gradient_user(gradient_user& in, int index)
      : of(in), g(in.g_), i(index), n(in.g_.nodes[index]) {}

  [[gnu::cold]] static constexpr bool use(gradient_user& in, int index, int& from) {
    const node& n = in.g_.nodes[index];
    const op_kind kind = n.op->kind;
    if (const loop_range* const repeat = repeat_of(in.g_, n.loop)) {
      from = loop_gradient_user(in, index).of_rows(*repeat);
      return true;
    }
    if (kind != op_kind::library && kind != op_kind::output && kind != op_kind::alias) return false;
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
  /// A node of a repeat is of another parameter in each row: its place names the first row's, where
  /// those of the others follow.
  constexpr int of_rows(const loop_range& repeat) const {
    const int* const in = g.inputs(n);
    const int rows = static_cast<int>(repeat.trip), first = g.count + of.rows_;
    of.rows_ += rows;
    for (int row = 0; row < rows; ++row) {
      int from = nobody;
      if (is<op::repeat_input>(n)) {
        from = of.read(in[row]);
      } else if (const int slot = slot_of_gradient(); slot >= 0) {
        from = slot + row * repeat.stride;
      } else {
        for (int k = 0; k < n.arity; ++k) {
          const bool inside = repeat_of(g, g.nodes[in[k]].loop);
          from = joined(from, inside ? of.from_[of.from_[in[k]] + row] : of.read(in[k]));
        }
      }
      of.from_[first + row] = from;
    }
    return first;
  }
  constexpr int slot_of_gradient() const {
    if (!is<op::detach>(n)) return -1;
    const auto of_slot = n.attributes<op::of_slot>();
    return of_slot.gradient ? int{of_slot.slot} : -1;
  }
  constexpr int joined(int from, int other) const {
    if (other == nobody || other == from) return from;
    if (from == nobody) return other;
    of.mix(from);
    of.mix(other);
    return from;
  }
  constexpr int of_row() const {
    return of.from_[of.from_[n.in[0]] + n.attributes<op::of_loop>().number];
  }
  /// Where it has no owner it is made of what its steps hand on, or of what it is at first.
  constexpr int of_last() const {
    const auto a = n.attributes<op::last_step>();
    if (a.gradient()) return nobody;
    if (a.owner() >= 0) return a.owner() == a.slot() ? nobody : a.owner();
    const node& loop = g.nodes[n.in[0]];
    const int carries = loop.attributes<op::loop>().carries;
    const int next = of.from_[g.inputs(loop)[a.number]];
    return next != nobody ? next : of.from_[g.inputs(loop)[carries + a.number]];
  }

  /// The slot that is a carry from here on, or what the last step has left of it; or -1.
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

  /// The carries of a loop that has been recorded, those that are not read too.
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
