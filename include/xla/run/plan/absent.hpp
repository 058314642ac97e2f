// SPDX-License-Identifier: Apache-2.0
#pragma once

// Removes the parts of a program that a call does not need, such as the gradient and update of a
// frozen parameter. sized.hpp calls it when sizes become known; passes have determined the
// dependencies.

#include <cstddef>
#include <cstring>
#include <memory>

#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/run/plan/loop_steps.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

template <class In>
class basic_loop_body;

/// The missing parts of a call, per slot, one bit each.
enum lacks : char {
  no_gradient = 1,      ///< the parameter or tensor has no gradient in this call
  unseen_gradient = 2,  ///< the tensor becomes another leaf, and nothing else refers to the old one
};

/// Removes the writes of parameters and tensors without gradient (absent, per slot), writes that
/// nobody will read, and every step that nothing else needs; a body behaves the same where p.grad()
/// is undefined. In a world of one it also removes exchanges.
template <class In>
class basic_pruner {
 public:
  /// The differences from the program are stored in memory that begins with the signature.
  [[XLA_PLANS]] basic_pruner(program& p, const list<char>& absent, bool alone,
                             std::unique_ptr<std::byte[]>& memory)
      : p_(p), absent_(absent), alone_(alone) {
    const program_sizes& n = p.count;
    const std::size_t slots =
        (bytes_of<char>(n.slots) + sizeof(node) - 1) / sizeof(node) * sizeof(node);
    bytes_ = slots + bytes_of<node>(n.values) + bytes_of<std::byte>(n.values) +
             bytes_of<write>(n.writes) + bytes_of<step>(n.steps) + bytes_of<program_slot>(n.slots) +
             bytes_of<step>(n.bodies) + bytes_of<int>(n.bodies > 0 ? n.outputs + n.inputs : 0);
    memory.reset(new std::byte[bytes_]());
    if (!absent.empty()) std::memcpy(memory.get(), absent.data(), bytes_of<char>(n.slots));
    next_ = memory.get() + slots;
    values_ = copy(p.values, n.values);
    steps_ = copy(p.steps, n.steps);
    slots_ = copy(p.slots, n.slots);
    writes_ = copy(p.writes, n.writes);
    if (n.bodies > 0) {
      bodies_ = copy(p.bodies, n.bodies);
      outputs_ = copy(p.outputs, n.outputs);
      inputs_ = copy(p.inputs, n.inputs);
    }
    wanted_ = next_;
  }

  [[XLA_PLANS]] void run() {
    replace_values();
    keep_writes();
    for (int i = 0; i < p_.count.results; ++i) want(p_.results[i]);
    for (int i = 0; i < p_.count.writes; ++i) want(writes_[i].value);
    keep_steps();
    forget_gradients();
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_); }

 private:
  friend class basic_loop_body<In>;
  // Slots that end with the body come after those of the call.
  bool is_absent(int slot) const { return lacks_at(slot, no_gradient); }
  bool lacks_at(int slot, lacks what) const {
    return slot >= 0 && slot < absent_.size() && (absent_[slot] & what) != 0;
  }

  template <class T>
  static std::size_t bytes_of(int n) {
    return static_cast<std::size_t>(n) * sizeof(T);
  }
  template <class T>
  T* copy(const T*& from, int n) {
    static_assert(alignof(T) <= alignof(node) && sizeof(T) % alignof(T) == 0);
    void* const to = std::memcpy(next_, from, bytes_of<T>(n));
    next_ += bytes_of<T>(n);
    from = static_cast<T*>(to);
    return static_cast<T*>(to);
  }
  [[XLA_PLANS]] void replace_values() {
    for (int v = 0; v < p_.count.values; ++v) {
      node& n = values_[v];
      if (alone_ && n.op->alone_is_input) stand_for_input(n);
      const bool part = is<op::gradient_part>(n);
      if (!part && !is<op::updated>(n)) continue;
      const int slot = n.attributes<op::of_slot>().slot;
      if (!is_absent(slot)) continue;
      if (!part) {
        n.in[0] = p_.slots[slot].leaf;
        continue;
      }
      n.op = &builtin<op::constant>;
      n.arity = 0;
      n.set<op::constant>({});
    }
  }
  [[XLA_PLANS]] void keep_writes() {
    int kept = 0;
    for (int i = 0; i < p_.count.writes; ++i) {
      const write w = writes_[i];
      if (w.gradient && lacks_at(w.slot, unseen_gradient)) continue;
      if (!is_absent(w.owner)) writes_[kept++] = w;
      else if (program_slot& s = slots_[w.slot]; w.gradient && s.left_in < 0 && s.grad_leaf < 0)
        s.clears_gradient = true;
    }
    p_.count.writes = kept;
  }
  // The gradient at entry, if nothing is added to it.
  void forget_gradients() {
    for (int i = 0; i < p_.count.slots; ++i)
      if (int& leaf = slots_[i].grad_leaf;
          is_absent(i) && leaf >= 0 && wanted_[leaf] == std::byte{0})
        leaf = -1;
  }
  bool wants(int v) const {
    return wanted_[v] != std::byte{0} && values_[v].op->kind != op_kind::alias;
  }
  void want(int v) {
    for (; wanted_[v] == std::byte{0}; v = p_.inputs_of(v)[0]) {
      wanted_[v] = std::byte{1};
      if (values_[v].op->kind != op_kind::alias) return;
    }
  }
  [[XLA_PLANS]] void keep_steps() {
    const int left_out = keep_steps(steps_, p_.count.steps);
    p_.steps += left_out;
    p_.count.steps -= left_out;
  }
  // From the last step to the first, moving the remaining ones to the end. Returns how many were
  // removed.
  [[XLA_PLANS]] int keep_steps(step* steps, int count) {
    int first = count;
    for (int i = count - 1; i >= 0; --i) {
      step s = steps[i];
      bool any = s.check;
      for (int k = 0; k < s.outputs; ++k) any |= wants(p_.outputs[s.first_output + k]);
      if (!any) continue;
      if (s.body > 0) prune_loop(*values_[s.value].op, *this, s);
      for (int k = 0; k < s.inputs; ++k) want(p_.inputs[s.first_input + k]);
      steps[--first] = s;
    }
    return first;
  }
  program& p_;
  const list<char>& absent_;
  const bool alone_;
  std::size_t bytes_;
  std::byte* next_;
  node* values_;
  step* steps_;
  step* bodies_ = nullptr;
  int *outputs_ = nullptr, *inputs_ = nullptr;
  program_slot* slots_;
  write* writes_;
  std::byte* wanted_;  // per value
};

/// Returns the size of the memory in bytes.
template <class In = void>
[[XLA_PLANS]] std::int64_t prune(program& p, const list<char>& absent, bool alone,
                                 std::unique_ptr<std::byte[]>& memory) {
  basic_pruner<In> by(p, absent, alone, memory);
  by.run();
  return by.bytes();
}

}  // namespace xla::detail
