// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks indices and probabilities before a program runs by XLA, which would clamp them instead.
// The native kernels check while they run.

#include <memory>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/ext/pjrt/device_memory.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/backend/op_by_op.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/execute/executor.hpp"

namespace xla::detail {

/// The checks of a program, which run before it: XLA has no errors, but clamps an index and drops
/// an element outside. If the checked value is an argument, or is made of integer arguments element
/// by element, the host checks it. Any other checked value is first computed by a program of its
/// own. Checks in the steps of loops are left to XLA.
class pjrt_checks {
 public:
  pjrt_checks(const backend& by, const sized_program& p) : p_(p) {
    find();
    if (computed_.empty()) return;
    sized_program before = in_arrays_of<>(p);
    before.source.count.writes = before.source.count.steps = 0;  // which run here
    before.source.count.results = computed_.size();
    before.source.results = computed_.data();
    before_ = by.make(std::move(before));
  }
  pjrt_checks(const pjrt_checks&) = delete;

  /// Throws what the checks throw: those that need nothing from the device, or all if it may
  /// compute. True if none was left out.
  bool run(const run_arguments& with, bool may_compute) const {
    if (steps_.empty()) return true;
    basic_op_by_op<void> values(p_, with);
    if (may_compute && before_) compute(with, values);
    bool all = true;
    for (const part& s : steps_) {
      if (s.computed && !may_compute) {
        all = false;
        continue;
      }
      for (const int v : s.arguments) to_host(v, with, !may_compute);
      values.run(*s.of);
    }
    return all;
  }

 private:
  /// A check, or a host step that computes a checked value.
  struct part {
    const step* of;
    bool computed = false;  ///< it reads a value that the device computes
    list<int> arguments;    ///< values that it reads
  };

  int input(const step& s, int k) const {
    int v = p_.source.inputs[s.first_input + k];
    while (p_.source.values[v].op->kind == op_kind::alias) v = p_.source.inputs_of(v)[0];
    return v;
  }
  bool is_argument(int v) const {
    const node& n = p_.source.values[v];
    return is<op::input>(n) && !n.attributes<op::input>().gradient;
  }
  bool is_made_on_host(int v, const list<char>& made) const {
    const node& n = p_.source.values[v];
    return made[v] || is<op::scalar>(n) || is<op::size>(n) || is<op::constant>(n) ||
           (is_argument(v) && !is_fraction(n.type));
  }

  bool is_checked(const step& s) const {
    return s.check && !p_.source.values[s.value].op->loops_steps;
  }

  void find() {
    list<char> made(p_.source.count.values), wanted(p_.source.count.values);
    list<char> computed(p_.source.count.values);
    const int steps = p_.source.count.steps;
    for (int i = 0; i < steps; ++i) {
      const step& s = p_.source.steps[i];
      const op_info& op = *p_.source.values[s.value].op;
      bool here = op.kind == op_kind::map && !op.impure;
      for (int k = 0; here && k < s.inputs; ++k) here = is_made_on_host(input(s, k), made);
      made[s.value] = here;
    }
    for (int i = steps; i-- > 0;) {
      const step& s = p_.source.steps[i];
      if (!is_checked(s) && !wanted[s.value]) continue;
      for (int k = 0; k < s.inputs; ++k) {
        const int v = input(s, k);
        if (made[v]) wanted[v] = true;
        else if (!is_argument(v) && !is_made_on_host(v, made)) computed[v] = true;
      }
    }
    for (int i = 0; i < steps; ++i)
      if (const step& s = p_.source.steps[i]; is_checked(s) || wanted[s.value])
        add(s, computed);
    for (int v = 0; v < computed.size(); ++v)
      if (computed[v]) computed_.push_back(v);
  }
  void add(const step& s, const list<char>& computed) {
    part& p = steps_.emplace_back(part{&s, false, {}});
    for (int k = 0; k < s.inputs; ++k) {
      const int v = input(s, k);
      if (computed[v]) p.computed = true;
      if (is_argument(v)) p.arguments.push_back(v);
    }
  }

  ref<buffer> make_output(int v) const {
    const auto bytes = static_cast<std::size_t>(p_.bytes(v));
    if (const memory_space* const there = before_->space())
      return ref<buffer>(there->make(*there, bytes));
    return ref<buffer>(buffer::make(bytes, {p_.source.values[v].op->name, &p_.shapes[v]}));
  }
  void compute(const run_arguments& with, basic_op_by_op<void>& values) const {
    list<buffer*> outputs;
    list<ref<buffer>> made;
    for (const int v : computed_) outputs.push_back(made.emplace_back(make_output(v)).get());
    before_->run({with.slots, outputs.data(), with.random});
    for (int i = 0; i < computed_.size(); ++i) {
      ext::pjrt::host_copy_of(*made[i], static_cast<std::size_t>(p_.bytes(computed_[i])));
      values.give(computed_[i], std::move(made[i]));
    }
  }
  // The program's inputs are ready when it runs; its tickets may be those of the tensors that it
  // writes.
  void to_host(int v, const run_arguments& with, bool waits) const {
    const auto slot = p_.source.values[v].attributes<op::input>().slot;
    buffer& b = *with.slots[slot].value;
    if (waits) wait_for(b);
    ext::pjrt::host_copy_of(b, static_cast<std::size_t>(p_.bytes(v)));
  }

  const sized_program& p_;
  list<part> steps_;    ///< in the program's order
  list<int> computed_;  ///< values
  std::unique_ptr<executable> before_;
};

}  // namespace xla::detail
