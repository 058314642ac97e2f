// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets the update of a block's parameters run as soon as a loop's step has made their gradients,
// which are then in the cache. Plans of programs with loops call it before other arrangements.

#include <algorithm>
#include <cstdint>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/graph/loops.hpp"
#include "xla/kernel/threads/parallel.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/plan/plan.hpp"

namespace xla::detail {

/// Finds regions behind a loop that read one row of what its steps make, and otherwise only what is
/// known before the loop: an optimizer's rule for one block's parameter. They form a group with the
/// loop, which runs each of them after the step whose row it reads. What waits for all gradients,
/// as a rule does after clipping by their norm, stays behind the loop. So does a region that may
/// overwrite what another step of the loop reads. Bits do not change.
template <class In>
class basic_update_joiner {
 public:
  /// once: per step of the program, whether it runs only when memory is made.
  basic_update_joiner(dependent<In, plan>& out, const list<char>& once)
      : out_(out), p_(out.source), once_(once) {}

  [[XLA_PLANS]] void run() {
    made_.assign(p_.count.values, -1);
    int last_check = -1;
    for (int i = 0; i < p_.count.steps; ++i) {
      const step& s = out_.step_at(i);
      if (s.exchanges) return;
      if (s.check && !out_.in_rows) last_check = i;
      for (int k = 0; k < s.outputs; ++k) made_[output(s, k)] = i;
    }
    // A value that is written before a check has to be a new one.
    for (int i = last_check + 1; i < p_.count.steps; ++i)
      if (out_.step_at(i).body > 0 && !is_once(i)) i = join(i);
  }

 private:
  static constexpr int none = -1, all = -2;
  struct joined {
    int turn;    ///< how many steps of the loop have run before the one whose row it reads
    int number;  ///< of the step, in the program
  };

  int base(int v) const { return out_.base[v]; }
  int output(const step& s, int k) const { return p_.outputs[s.first_output + k]; }
  bool is_once(int i) const { return once_[out_.order[i]]; }
  const node& value(int v) const { return p_.values[v]; }

  /// Returns the last step of the loop's group, or the loop.
  [[XLA_PLANS]] int join(int loop) {
    const step& s = out_.step_at(loop);
    const auto about = value(s.value).template attributes<op::loop>();
    const auto trip = static_cast<int>(value_at(out_.symbols, about.trip));
    row_of_.assign(p_.count.values, none);
    bool any = false;
    for (int k = 1; k < s.outputs; ++k)
      if (const int v = output(s, k); is<op::slice>(value(v))) {
        const auto start = value_at(out_.symbols, value(v).template attributes<op::slice>().start);
        row_of_[v] = static_cast<int>(start / out_.shapes[v][0]);
        any = true;
      }
    if (!any) return loop;
    find_reads(s, about.number);
    found_.clear();
    rest_.clear();
    for (int i = loop + 1; i < p_.count.steps; ++i) {
      const int row = row_read_by(i, loop);
      if (row < 0) {
        rest_.push_back(out_.order[i]);
        continue;
      }
      found_.push_back({about.reverse ? trip - 1 - row : row, out_.order[i]});
      for (int k = 0; k < out_.step_at(i).outputs; ++k) row_of_[output(out_.step_at(i), k)] = row;
    }
    if (found_.empty()) return loop;
    form(loop, trip);
    return loop + found_.size();
  }

  /// Per value, the only row that the loop's steps read it in: none, or `all` if that is not known.
  [[XLA_PLANS]] void find_reads(const step& s, int number) {
    read_.assign(p_.count.values, none);
    const node& loop = value(s.value);
    for (int k = 0; k < loop.arity; ++k) read_[base(p_.inputs_of(s.value)[k])] = all;
    for (int i = 0; i < s.body; ++i) {
      const step& inner = p_.bodies[s.first_body + i];
      for (int k = 0; k < inner.inputs; ++k) read_[base(p_.inputs[inner.first_input + k])] = all;
    }
    for (int v = 0; v < p_.count.values; ++v) {
      const node& n = value(v);
      if (!is<op::step_slice>(n) && !is<op::step_before>(n)) continue;
      if (n.template attributes<op::of_loop>().loop != number) continue;
      for (int k = 0; k < n.arity; ++k) {
        const int from = base(p_.inputs_of(v)[k]);
        read_[from] = all;
        if (k > 0 || !is<op::concat>(value(from))) continue;
        for (int row = 0; row < value(from).arity; ++row) {
          int& only = read_[base(p_.inputs_of(from)[row])];
          only = only == none || only == row ? row : all;
        }
      }
    }
  }

  /// The row that a step needs if it can run after the step of the loop that makes it; or none.
  [[XLA_PLANS]] int row_read_by(int i, int loop) const {
    const step& s = out_.step_at(i);
    const bool region = s.kind == step_kind::map || s.kind == step_kind::row;
    if (!region || s.space < 0 || is_once(i) || out_.group_of[i] >= 0) return none;
    int row = none;
    for (int k = 0; k < s.inputs; ++k) {
      const int v = base(p_.inputs[s.first_input + k]), of = row_of_[v];
      if (of == none ? made_[v] >= loop : row != none && of != row) return none;
      if (of != none) row = of;
    }
    if (row == none || is_shared(s)) return none;
    for (int k = 0; k < s.outputs; ++k)
      if (const int old = replaced(output(s, k)); old >= 0)
        if (const int only = read_[base(old)]; only != none && only != row) return none;
    return row;
  }
  /// Whether several threads run it at the same time as others, as it is too small to be divided.
  [[XLA_PLANS]] bool is_shared(const step& s) const {
    const shape space = value_at(out_.symbols, p_.spaces[s.space]);
    return num_threads() > 1 && count(space) * s.ops < kernel::parallel_work;
  }
  /// The value at entry that a write replaces; -1 if there is none.
  int replaced(int v) const {
    const placement& q = out_.placements[v];
    return q.where == storage::write ? p_.replaced_by(p_.writes[q.index]) : -1;
  }

  [[XLA_PLANS]] void form(int loop, int trip) {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const joined& a, const joined& b) { return a.turn < b.turn; });
    step_group g;
    g.first = loop;
    g.last = loop + found_.size();
    g.slices = step_group::whole;
    g.threads = 0;
    g.borders = out_.borders.size();
    for (int turn = 0, k = 0; turn <= trip; ++turn) {
      out_.borders.push_back(k);
      while (k < found_.size() && found_[k].turn == turn) ++k;
    }
    int i = loop;
    out_.group_of[i] = out_.groups.size();
    for (const joined& f : found_) {
      out_.order[++i] = f.number;
      out_.group_of[i] = out_.groups.size();
    }
    for (int number : rest_) out_.order[++i] = number;
    out_.groups.push_back(g);
    for (int k = loop; k < p_.count.steps; ++k)
      for (int o = 0; o < out_.step_at(k).outputs; ++o) made_[output(out_.step_at(k), o)] = k;
  }

  dependent<In, plan>& out_;
  const program& p_;
  const list<char>& once_;
  list<int> made_;    // per value: the position of the step that makes it
  list<int> row_of_;  // per value: the row of the loop's results that it is, or is made of
  list<int> read_;    // per value: see find_reads
  list<joined> found_;
  list<int> rest_;  // numbers of the other steps
};

template <class In>
[[XLA_PLANS]] void join_updates(plan_steps& steps) {
  dependent<In, basic_update_joiner<void>>(steps.of, steps.once).run();
}
XLA_INSTANCE(void join_updates<void>(plan_steps&));

}  // namespace xla::detail
