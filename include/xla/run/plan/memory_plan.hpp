// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides where each value of a plan is stored and whose memory it may reuse or update in place.
// specialize.hpp runs it; offsets come from arena.hpp.

#include <algorithm>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/run/plan/arena.hpp"
#include "xla/run/plan/plan.hpp"

namespace xla::detail {

/// Decides where intermediate values are stored. The memory of a value is reused after its last
/// reader. If each element is read before it is written, it is reused for that reader's own result.
/// The memory of a new gradient or result is donated to other values until it is written.
template <class In>
class basic_memory_planner {
 public:
  /// made: per value, the step that makes it. fixed: per value, whether it depends on sizes alone,
  /// and so stays in memory between calls.
  basic_memory_planner(dependent<In, plan>& out, const list<int>& made, const list<char>& fixed)
      : out_(out), p_(out.source), made_(made), fixed_(fixed) {}

  [[XLA_PLANS]] void run() {
    find_last();
    find_lives();
    dependent<In, arena_planner> arena;
    list<int> added, donors;
    place_slices();
    for (int v = 0; v < p_.count.values; ++v)
      if (first_[v] != nowhere && over_[v] < 0 && in_arena(v)) {
        arena.add(out_.placements[v].bytes, first_[v], end_[v]);
        added.push_back(v);
      }
    for (const step_group& g : out_.groups)
      if (g.by_slices()) arena.add(g.threads * g.bytes, g.first, g.last, false);
    donate(arena, donors);
    arena.run();
    for (int i = 0; i < added.size(); ++i) {
      const auto& spot = arena.where(i);
      placement& q = out_.placements[added[i]];
      q.offset = spot.offset;
      if (spot.block == dependent<In, arena_planner>::own) continue;
      q.where = storage::donated;
      q.index = donors[spot.block];
    }
    int next = added.size();
    for (step_group& g : out_.groups)
      if (g.by_slices()) g.offset = arena.where(next++).offset;
    follow();
    out_.over = std::move(over_);
    out_.arena_bytes = arena.size();
    out_.unshared_bytes = arena.total();
  }

  /// For an op of step i that updates its input and would otherwise copy it: stores the input in
  /// the memory of its output v, which leaves the plan, if that is free when the input is made.
  [[XLA_PLANS]] void put_input(int i, int v) {
    const step& s = out_.step_at(i);
    if (out_.group_of[i] >= 0) return;
    for (int j = 0; j < s.inputs; ++j) {
      const int old = base(input(s, j));
      if (last_[old] != i || !in_arena(old) || fixed_[old] || made_[old] < 0) continue;
      if (!has_types_of(v, old) || !may_overwrite(out_, i, v, old)) continue;
      const int root = root_[old];
      const placement& q = out_.placements[v];
      if (!is_free(q, root)) return;
      first_[v] = first_[root];
      over_[v] = old;
      last_[old] = nowhere;
      out_.placements[root].index = q.index + (q.where == storage::result ? p_.count.writes : 0);
      out_.placements[root].where = storage::donated;
      return;
    }
  }

 private:
  static constexpr int nowhere = -2;
  int base(int v) const { return out_.base[v]; }
  int input(const step& s, int k) const { return p_.inputs[s.first_input + k]; }
  [[XLA_PLANS]] bool in_arena(int v) const { return out_.placements[v].where == storage::arena; }
  [[XLA_PLANS]] bool in_slices(int v) const { return out_.placements[v].where == storage::slice; }

  // Finds the last step that reads each value; values copied at the end are read after all steps.
  [[XLA_PLANS]] void find_last() {
    last_.assign(p_.count.values, -1);
    for (int i = 0; i < p_.count.steps; ++i) {
      const step& s = out_.step_at(i);
      for (int k = 0; k < s.inputs; ++k) {
        const int v = base(input(s, k));
        last_[v] = in_slices(v) ? i : out_.end_of(i);
      }
    }
    for (int v : out_.copies)
      if (v >= 0) last_[base(v)] = p_.count.steps;
  }

  [[XLA_PLANS]] void find_lives() {
    first_.assign(p_.count.values, nowhere);
    end_ = over_ = root_ = list<int>(p_.count.values, -1);
    for (int v = 0; v < p_.count.values; ++v) {
      root_[v] = v;
      const op_info* op = p_.values[v].op;
      const bool number =
          is<op::constant>(*op) || (op->kind == op_kind::leaf && !is<op::input>(*op));
      if (base(v) != v || !in_arena(v) || !(number || fixed_[v])) continue;
      first_[v] = -1;
      end_[v] = p_.count.steps;
    }
    for (int i = 0; i < p_.count.steps; ++i)
      for (int k = 0; k < out_.step_at(i).outputs; ++k) live(i, k);
  }
  [[XLA_PLANS]] void live(int i, int k) {
    const step& s = out_.step_at(i);
    const int v = p_.outputs[s.first_output + k];
    if (fixed_[v] || goes_on(p_, s, k)) return;
    if (!in_arena(v) && !in_slices(v)) {
      first_[v] = out_.begin_of(i);
      if (s.kind != step_kind::library) return;
      const plan_hooks* const hooks = p_.values[s.value].op->plan;
      if (hooks && hooks->put_input) hooks->put_input(*this, i, v);
      return;
    }
    first_[v] = in_slices(v) ? i : out_.begin_of(i);
    end_[v] = std::max(last_[v], in_slices(v) ? i : out_.end_of(i));
    const int old = overwritten(i, k, v);
    if (old < 0) return;
    over_[v] = old;
    root_[v] = root_[old];
    end_[root_[v]] = end_[v];
    last_[old] = nowhere;  // its memory now belongs to the new value
  }
  /// Whether all values in old's memory have v's type and size.
  [[XLA_PLANS]] bool has_types_of(int v, int old) const {
    bool same = true;
    for (int u = old; u >= 0; u = over_[u])
      same &= p_.values[u].type == p_.values[v].type &&
              out_.placements[u].bytes == out_.placements[v].bytes;
    return same;
  }
  /// Whether the memory of a result or write holds nothing that is read when the value is made, or
  /// later. The memory of a write may hold the old value, which must stay if a check fails.
  [[XLA_PLANS]] bool is_free(const placement& to, int value) const {
    if (to.where == storage::result) return true;
    const write& w = p_.writes[to.index];
    if (!out_.in_place[to.index]) return !w.gradient;
    const int begin = first_[value], maker = made_[value];
    for (int i = begin; i < p_.count.steps; ++i)
      if (out_.step_at(i).check && !out_.in_rows) return false;
    const int old = p_.replaced_by(w);
    if (old < 0 || last_[old] < begin) return true;
    return last_[old] == maker && out_.group_of[maker] < 0 &&
           out_.shapes[old] == out_.shapes[value] && may_overwrite(out_, maker, value, old);
  }
  /// The input whose memory a step may use for its output number k; -1: none.
  [[XLA_PLANS]] int overwritten(int i, int k, int v) const {
    const step& s = out_.step_at(i);
    if (out_.group_of[i] >= 0 && !in_slices(v) && !out_.on_parts(i)) return -1;
    if (s.kind == step_kind::library) {
      for (int j = 0; j < s.inputs; ++j)
        if (const int old = base(input(s, j)); dies_at(old, i, v) && may_overwrite(out_, i, v, old))
          return old;
      return -1;
    }
    if (s.space < 0) return -1;
    const shape space = value_at(out_.symbols, p_.spaces[s.space]);
    if (!(out_.shapes[v] == space) || !reads_before_writing(p_, s, k)) return -1;
    for (int j = 0; j < s.inputs; ++j)
      if (const int old = base(input(s, j)); dies_at(old, i, v) && same_traversal(s, old, v) &&
                                             (!out_.on_parts(i) || made_[old] == i - 1))
        return old;
    return -1;
  }
  // Whether every operand that reads these elements reads exactly the one that is being written.
  bool same_traversal(const step& s, int old, int v) const {
    if (out_.placements[old].bytes != out_.placements[v].bytes) return false;
    bool same = true;
    for (int j = 0; j < s.inputs; ++j)
      if (base(input(s, j)) == old) same &= out_.shapes[input(s, j)] == out_.shapes[v];
    return same;
  }
  /// Whether step `step` is the last to read `old`, in the memory that v would get.
  bool dies_at(int old, int step, int v) const {
    return last_[old] == step && out_.placements[old].where == out_.placements[v].where &&
           !fixed_[old] && made_[old] >= 0;
  }

  // Values that only one group reads are stored by slice, in each thread's memory.
  [[XLA_PLANS]] void place_slices() {
    for (step_group& g : out_.groups) {
      if (!g.by_slices()) continue;
      const int at_once = g.run != nullptr;  // a step may run together with the next one, a map
      dependent<In, arena_planner> memory;
      list<int> added;
      for (int i = g.first; i <= g.last; ++i) {
        const step& s = out_.step_at(i);
        for (int k = 0; k < s.outputs; ++k) {
          const int v = p_.outputs[s.first_output + k];
          if (!in_slices(v) || over_[v] >= 0) continue;
          memory.add(out_.placements[v].bytes / g.slices, first_[v] - at_once, end_[v] + at_once);
          added.push_back(v);
        }
      }
      memory.run();
      for (int n = 0; n < added.size(); ++n)
        out_.placements[added[n]].offset = memory.where(n).offset;
      g.bytes = memory.size();
    }
  }

  // Lends the memory of outputs to intermediate values. A new result has no other holder. A
  // gradient may get the old gradient's memory, which is not needed once no check can fail any
  // more.
  [[XLA_PLANS]] void donate(dependent<In, arena_planner>& arena, list<int>& donors) const {
    int last_check = -1;
    for (int i = 0; i < p_.count.steps; ++i)
      if (out_.step_at(i).check) last_check = i;
    for (int i = 0; i < p_.count.writes; ++i) {
      const write& w = p_.writes[i];
      if (!w.gradient || out_.copies[i] >= 0 || p_.slots[w.slot].grad_leaf >= 0) continue;
      const int v = base(w.value);
      const placement& q = out_.placements[v];
      if (q.offset < 0) continue;  // rows of stacks are there
      arena.donate(q.bytes, last_check + 1, first_[v] - 1);
      donors.push_back(i);
    }
    for (int i = 0; i < p_.count.results; ++i) {
      const int output = p_.count.writes + i, v = base(p_.results[i]);
      if (out_.copies[output] >= 0) continue;
      // The rows of a stack are aligned like other memory only if their size is a multiple of the
      // alignment; else values of other types may not be stored there.
      if (out_.in_rows && out_.placements[v].bytes % arena.alignment != 0) continue;
      arena.donate(out_.placements[v].bytes, 0, first_[v] - 1);
      donors.push_back(output);
    }
  }

  // A value that overwrites another one is stored where the first of the chain is.
  [[XLA_PLANS]] void follow() {
    for (int v = 0; v < p_.count.values; ++v) {
      placement& q = out_.placements[v];
      const placement& first = out_.placements[root_[v]];
      q.where = first.where;
      q.index = first.index;
      q.offset = first.offset;
      if (q.where == storage::donated) out_.donated.push_back(v);
    }
  }

  dependent<In, plan>& out_;
  const program& p_;
  const list<int>& made_;
  const list<char>& fixed_;
  list<int> last_;  // per value: the last step that reads it
  list<int> first_,
      end_;         // per value: the steps during which its memory is in use
  list<int> over_;  // per value: the one whose memory it overwrites, or -1
  list<int> root_;  // per value: the first one in that memory
};
using memory_planner = basic_memory_planner<void>;

/// Whether an update may overwrite `old`: it is the first input, and no other operand reads it.
template <class In>
[[XLA_PLANS]] bool may_update(const basic_plan<void>& p, int i, int value, int old) {
  const step& s = p.step_at(i);
  const auto reads = [&](int k) { return p.base[p.source.inputs[s.first_input + k]] == old; };
  bool may = reads(0) && p.placements[old].bytes == p.placements[value].bytes;
  for (int k = 1; k < s.inputs; ++k) may &= !reads(k);
  return may;
}
XLA_INSTANCE(bool may_update<void>(const plan&, int, int, int));

template <class In>
[[XLA_PLANS]] void put_input(basic_memory_planner<void>& by, int i, int value) {
  static_cast<dependent<In, memory_planner>&>(by).put_input(i, value);
}
XLA_INSTANCE(void put_input<void>(memory_planner&, int, int));

}  // namespace xla::detail
