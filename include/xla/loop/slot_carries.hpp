// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the slots that the body of a captured loop writes, such as parameters and their gradients,
// into carries of the loop. captured.hpp uses it; loops recorded at run time have
// run/trace/written_state.hpp for the same.

#include <cstddef>
#include <cstdint>

#include "xla/base/owned_array.hpp"
#include "xla/loop/graph_mark.hpp"
#include "xla/tensor/handle.hpp"
#include "xla/transform/loop_recorder.hpp"

namespace xla::detail {

/// The parameters, buffers and gradients that the body of a loop, or a branch, writes. Each becomes
/// a carry, which holds the slot's value in the body and is stored to the slot after the loop. They
/// are known only after the body has been recorded, which is then recorded again with them.
class slot_carries {
 public:
  constexpr explicit slot_carries(graph& in, bool of_branch = false)
      : g(in),
        slots_(in.slot_count),
        of_branch_(of_branch),
        of_(static_cast<std::size_t>(in.slot_count) + 1) {
    // Results of repeats get nodes here, because they do not belong to the loop.
    for (int i = 0; i < slots_; ++i) {
      const slot& s = g.slots[i];
      if (s.repeated >= 0) g.current_of(i);
      if (s.repeated_grad >= 0) g.gradient_of(i);
    }
  }
  slot_carries(const slot_carries&) = delete;

  /// The number of carries that they take.
  constexpr int count() const {
    int n = 0;
    for (int i = 0; i < found(); ++i) n += of(i).value + (of(i).gradient != began::nothing);
    return n;
  }

  /// Before the body: adds a carry for each known slot.
  constexpr void begin(loop_recorder& loop) {
    for (int i = 0; i < found(); ++i) {
      carried& c = of(i);
      c.absent = g.slots[i].state == grad_state::absent;
      c.was_dropped = g.slots[i].dropped;
      c.there = g.slots[i].state == grad_state::present &&
                !(c.was_dropped && is<op::carry>(g.nodes[g.slots[i].grad]));
      if (c.gradient == began::nothing) continue;
      const around_loop outside(g, loop.number());
      if (c.gradient == began::at_zero) c.gradient_init = left_before(i);
      else if (c.gradient == began::at_entry) c.gradient_init = g.gradient_of(i);
    }
    for (int i = 0; i < slots_; ++i) {
      carried& c = of(i);
      if (c.value) {
        c.value_init = g.slots[i].current;
        c.value_carry = loop.state(c.value_init, op::carry::of_value(i));
        g.write(i, c.value_carry);
      }
      if (c.gradient != began::nothing) {
        c.gradient_carry = loop.state(c.gradient_init, op::carry::of_gradient(i));
        g.slots[i].grad = c.gradient_carry;
        g.slots[i].state = grad_state::present;
        g.slots[i].dropped = of_branch_ ? c.was_dropped : c.dropped;
      }
      const slot& s = g.slots[i];
      c.at_start = {s.current, s.grad, s.state, s.requires_grad, s.requires_grad_set};
    }
  }

  /// The reason why the recorded body cannot be a loop's; nullptr if it can.
  constexpr const char* refusal() const {
    for (int i = 0; i < slots_; ++i) {
      if (!changed(i)) continue;
      const slot_state& was = of(i).at_start;
      const slot& is = g.slots[i];
      if (was.requires_grad != is.requires_grad || was.requires_grad_set != is.requires_grad_set)
        return "the body calls requires_grad_(): call it before the loop";
      if (!writes_value(i) && !writes_gradient(i)) continue;
      if (is.functional) return "the body writes a functional_copy(): make it in the body";
      if (is.kind != slot_kind::cell && is.kind != slot_kind::local && !is.given)
        return "the body writes an argument tensor: make it a carry";
    }
    return nullptr;
  }
  constexpr bool writes() const {
    bool any = false;
    for (int i = 0; i < slots_; ++i) any |= changed(i) && (writes_value(i) || writes_gradient(i));
    return any;
  }
  /// Whether the body, from a node on, writes or reads a slot that was not known, so that it must
  /// be recorded again.
  constexpr bool more(int begin) {
    bool any = false;
    for (int i = 0; i < slots_; ++i) {
      carried& c = of(i);
      c.dropped = false;
      if (c.gradient == began::nothing && !changed(i)) continue;
      c.dropped = writes_gradient(i) && g.slots[i].state == grad_state::absent;
      if (!c.value && writes_value(i)) any = c.value = true;
      if (c.gradient == began::nothing && writes_gradient(i)) {
        // A branch that does not run leaves the values of an earlier call.
        const bool stays = of_branch_ && !c.dropped && c.at_start.state == grad_state::untouched;
        c.gradient = stays ? began::at_entry : began::at_zero;
        any = true;
      } else if (c.gradient == began::at_zero && !c.absent && reads(i, begin)) {
        c.gradient = began::at_entry;
        any = true;
      }
    }
    any_ |= any;
    return any;
  }

  /// The values that each step passes on, and the initial ones, after the loop's own carries.
  constexpr void yield_values(int* next, int* init) {
    for (int i = 0; i < found(); ++i) {
      carried& c = of(i);
      if (c.value) {
        *next++ = c.value_next = g.value_of(i);
        *init++ = c.value_init;
      }
      if (c.gradient == began::nothing) continue;
      const bool there = g.slots[i].state == grad_state::present;
      *next++ = c.gradient_next = there ? g.slots[i].grad : zeros_as(i);
      *init++ = c.gradient_init;
    }
  }
  /// After the loop: stores the last step's values, from the carry of that number on.
  constexpr void end(const loop_recorder& loop, int first) {
    for (int i = 0; i < found(); ++i) {
      const carried& c = of(i);
      g.slots[i].dropped = c.was_dropped;
      if (c.value) g.write(i, loop.last_state(first++, c.value_next, op::carry::of_value(i)));
      if (c.gradient == began::nothing) continue;
      // A branch that drops a gradient leaves zeros, because the gradient exists if the branch does
      // not run.
      const bool there = c.there || (c.gradient == began::at_entry && !g.slots[i].collected);
      const bool kept = of_branch_ && there;
      if (kept || g.slots[i].state == grad_state::present) {
        g.slots[i].grad = loop.last_state(first, c.gradient_next, op::carry::of_gradient(i));
        g.slots[i].state = grad_state::present;
      }
      ++first;
    }
  }

 private:
  /// The gradient of a slot in the first step: zeros if no step reads it.
  enum class began : std::uint8_t { nothing, at_zero, at_entry };
  /// The fields of a slot that a body may change; few, as each parameter has one of these.
  struct slot_state {
    int current = -1, grad = -1;
    grad_state state = grad_state::untouched;
    bool requires_grad = false;
    std::int8_t requires_grad_set = -1;
  };
  struct carried {
    bool value = false;
    bool absent = false;  ///< there is no gradient before the loop
    bool there = false;   ///< there is one, which the function has made or read
    bool dropped = false, was_dropped = false;  ///< slot::dropped in the loop, and before it
    began gradient = began::nothing;
    slot_state at_start;
    int value_init = -1, value_carry = -1, value_next = -1;
    int gradient_init = -1, gradient_carry = -1, gradient_next = -1;
  };

  /// How many slots may have to be carried: none if no recorded body has written one.
  constexpr int found() const { return any_ ? slots_ : 0; }
  constexpr carried& of(int i) { return of_.get()[i]; }
  constexpr const carried& of(int i) const { return of_.get()[i]; }

  /// The gradient after a loop of no steps, if its steps do not read it.
  constexpr int left_before(int i) const {
    const slot& s = g.slots[i];
    const bool there =
        s.state == grad_state::present && (of_branch_ || !is<op::carry>(g.nodes[s.grad]));
    return there ? s.grad : zeros_as(i);
  }
  constexpr int zeros_as(int i) const {
    const node& n = g.nodes[g.slots[i].current];
    return g.rules_of_loops->minus_zeros(n.type, n.dims_shape(), &g.sizes).lift(&g);
  }
  constexpr bool changed(int i) const {
    const slot_state& was = of(i).at_start;
    const slot& is = g.slots[i];
    return is.current != was.current || is.grad != was.grad || is.state != was.state ||
           is.requires_grad != was.requires_grad || is.requires_grad_set != was.requires_grad_set;
  }
  constexpr bool writes_value(int i) const {  // of a number: its node
    return g.slots[i].kind != slot_kind::scalar && of(i).at_start.current != g.slots[i].current;
  }
  constexpr bool writes_gradient(int i) const {
    const slot_state& was = of(i).at_start;
    const slot& is = g.slots[i];
    if (is.state != grad_state::present) return is.state != was.state;
    if (was.state == grad_state::present) return is.grad != was.grad;
    // A gradient that existed at entry, as the body has read it.
    const int entry = g.slots[is.origin < 0 ? i : is.origin].grad_leaf;
    return was.state == grad_state::absent || is.grad != entry;
  }
  constexpr bool reads(int i, int begin) const {
    const int carry = of(i).gradient_carry;
    bool any = g.slots[i].state == grad_state::present && g.slots[i].grad == carry;
    for (int k = begin; k < g.count; ++k) {
      const int* const in = g.inputs(g.nodes[k]);
      for (int j = 0; j < g.nodes[k].arity; ++j) any |= in[j] == carry;
    }
    return any;
  }

  graph& g;
  int slots_;
  bool of_branch_, any_ = false;
  owned_array<carried> of_;
};

}  // namespace xla::detail
