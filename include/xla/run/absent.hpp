// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "xla/base/later.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// The arrays in which a program differs that leaves out what only absent gradients want.
struct shorter_program {
  std::unique_ptr<node[]> values;
  std::unique_ptr<step[]> steps;
  std::unique_ptr<write[]> writes;
  std::unique_ptr<program_slot[]> slots;
};

/// Leaves out of a program the writes that belong to parameters without gradient (absent, per
/// slot), and every step that nothing else wants: what the body does where p.grad() is undefined.
template <class In>
class basic_shortener {
 public:
  basic_shortener(const program& p, const later<In, std::vector<char>>& absent,
                  shorter_program& to)
      : p_(p), absent_(absent), to_(to) {}

  program run() {
    program out = p_;
    out.values = copy(p_.values, p_.count.values, to_.values);
    out.slots = copy(p_.slots, p_.count.slots, to_.slots);
    out.writes = copy(p_.writes, p_.count.writes, to_.writes);
    out.steps = copy(p_.steps, p_.count.steps, to_.steps);
    replace_values();
    out.count.writes = keep_writes();
    for (int i = 0; i < p_.count.results; ++i) want(p_.results[i]);
    for (int i = 0; i < out.count.writes; ++i) want(to_.writes[at(i)].value);
    out.count.steps = keep_steps();
    return out;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool is_absent(int slot) const { return slot >= 0 && absent_[at(slot)]; }

  template <class T>
  static const T* copy(const T* from, int n, std::unique_ptr<T[]>& to) {
    to.reset(new T[at(n) + 1]);
    std::copy(from, from + n, to.get());
    return to.get();
  }
  void replace_values() {
    for (int v = 0; v < p_.count.values; ++v) {
      node& n = to_.values[at(v)];
      if (n.op != &updated_info && n.op != &gradient_part_info) continue;
      const int slot = static_cast<int>(n.attr / 2);
      if (!is_absent(slot)) continue;
      if (n.op == &updated_info) {
        n.in[0] = p_.slots[slot].leaf;
      } else {
        n.op = &constant_info;
        n.arity = 0;
        n.attr = 0;
      }
    }
  }
  int keep_writes() {
    int kept = 0;
    for (int i = 0; i < p_.count.writes; ++i) {
      const write w = p_.writes[i];
      if (!is_absent(w.owner)) to_.writes[at(kept++)] = w;
      else if (w.gradient) to_.slots[at(w.slot)].clears_gradient = true;
    }
    return kept;
  }
  void want(int v) {
    for (; !wanted_[at(v)]; v = to_.values[at(v)].in[0]) {
      wanted_[at(v)] = true;
      if (to_.values[at(v)].op->kind != op_kind::alias) return;
    }
  }
  int keep_steps() {
    later<In, std::vector<char>> keeps(at(p_.count.steps), false);
    for (int i = p_.count.steps - 1; i >= 0; --i) {
      const step& s = p_.steps[i];
      bool any = s.check;
      for (int k = 0; k < s.outputs; ++k) any |= wanted_[at(p_.outputs[s.first_output + k])] != 0;
      keeps[at(i)] = any;
      for (int k = 0; any && k < s.inputs; ++k) want(p_.inputs[s.first_input + k]);
    }
    int kept = 0;
    for (int i = 0; i < p_.count.steps; ++i)
      if (keeps[at(i)]) to_.steps[at(kept++)] = p_.steps[i];
    return kept;
  }

  const program& p_;
  const later<In, std::vector<char>>& absent_;
  shorter_program& to_;
  later<In, std::vector<char>> wanted_ = later<In, std::vector<char>>(at(p_.count.values), false);
};

}  // namespace xla::detail
