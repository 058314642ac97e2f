// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores what a loop keeps for the loop backward in the memory of gradients that the latter writes
// later. planned_loops.hpp calls it when a plan's loops are made, before memory is planned.

#include <cstdint>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/backend/loops.hpp"
#include "xla/run/plan/plan.hpp"

namespace xla::detail {

/// Finds stacks that one loop makes and another one reads row by row in the opposite direction,
/// while it writes new gradients of blocks. A row is stored in the memory of a gradient of the
/// block whose turn comes next, which is written only then; the last one has memory of its own.
/// Blocks that are called one by one need no more memory either.
template <class In>
class basic_stack_placer {
 public:
  explicit basic_stack_placer(dependent<In, plan>& out) : out_(out), p_(out.source) {}

  [[XLA_PLANS]] void run() {
    if (out_.in_rows) return;
    int last_check = -1;
    for (int i = 0; i < p_.count.steps; ++i)
      if (out_.step_at(i).check) last_check = i;
    // If a check fails, gradients stay as they are.
    for (int i = last_check + 1; i < p_.count.steps; ++i)
      if (out_.step_at(i).body > 0 && find_columns(i)) place(i, last_check);
  }

 private:
  using loop_type = dependent<In, basic_loop<In>>;
  static constexpr std::int64_t alignment = 64;
  /// The gradients of one parameter of all blocks, in the order of rows.
  struct column {
    list<int> values;
    std::int64_t bytes = 0, used = 0;
  };

  int input(const step& s, int k) const { return p_.inputs[s.first_input + k]; }
  int output(const step& s, int k) const { return p_.outputs[s.first_output + k]; }
  const node& value(int v) const { return p_.values[v]; }
  loop_type& loop_of(const step& s) const {
    loop_steps* l = out_.bodies.get();
    while (l->of != &s) l = l->next.get();
    return static_cast<loop_type&>(*l);
  }
  std::int64_t trip_of(const step& s) const {
    return value_at(out_.symbols, value(s.value).template attributes<op::loop>().trip);
  }

  /// Whether loop i writes rows that are new gradients, all of them.
  [[XLA_PLANS]] bool find_columns(int i) {
    const step& s = out_.step_at(i);
    const auto trip = static_cast<int>(trip_of(s));
    columns_.clear();
    list<int> stacks;  // per column
    for (int k = 1; k < s.outputs; ++k) {
      const int v = output(s, k);
      if (!is<op::slice>(value(v)) || !is_new_gradient(v)) continue;
      const int all = out_.base[p_.inputs_of(v)[0]];
      int c = 0;
      while (c < stacks.size() && stacks[c] != all) ++c;
      if (c == stacks.size()) {
        stacks.push_back(all);
        columns_.push_back({{}, out_.placements[v].bytes});
        columns_[c].values.assign(trip, -1);
      }
      const auto start = value_at(out_.symbols, value(v).template attributes<op::slice>().start);
      columns_[c].values[static_cast<int>(start / out_.shapes[v][0])] = v;
    }
    columns_.remove_if([](const column& c) {
      bool whole = true;
      for (int v : c.values) whole &= v >= 0;
      return !whole;
    });
    return columns_.size() > 0;
  }
  [[XLA_PLANS]] bool is_new_gradient(int v) const {
    const placement& q = out_.placements[v];
    if (q.where != storage::write || !p_.writes[q.index].gradient) return false;
    return p_.slots[p_.writes[q.index].slot].grad_leaf < 0;
  }

  /// Places the stacks that loop i reads.
  [[XLA_PLANS]] void place(int i, int last_check) {
    const step& s = out_.step_at(i);
    find_other_reads(i);
    for (int k = 0; k < s.inputs; ++k) {
      const int v = input(s, k);
      if (!is<op::steps>(value(v)) || read_otherwise_[v]) continue;
      if (out_.placements[v].where != storage::arena) continue;
      int maker = i - 1;
      while (maker > last_check && out_.step_at(maker).value != p_.inputs_of(v)[0]) --maker;
      if (maker > last_check) scatter(v, maker, i, k);
    }
  }
  /// Per value, whether something else than a step of loop i reads it, or one that needs other rows
  /// than that whose turn it is or comes next.
  [[XLA_PLANS]] void find_other_reads(int i) {
    const auto about = value(out_.step_at(i).value).template attributes<op::loop>();
    read_otherwise_.assign(p_.count.values, false);
    const auto note = [&](const step& s) {
      for (int k = 0; k < s.inputs; ++k) read_otherwise_[out_.base[input(s, k)]] = true;
    };
    for (int v : out_.copies)
      if (v >= 0) read_otherwise_[out_.base[v]] = true;
    for (int j = 0; j < p_.count.steps; ++j)
      if (j != i) note(out_.step_at(j));
    for (int j = 0; j < p_.count.bodies; ++j) note(p_.bodies[j]);
    for (int v = 0; v < p_.count.values; ++v) {
      const node& n = value(v);
      const int* const in = p_.inputs_of(v);
      const bool before = is<op::step_before>(n);
      bool by_turn = false;
      if (before || (is<op::step_slice>(n) && n.arity == 1)) {
        const auto of = n.template attributes<op::of_loop>();
        by_turn = of.loop == about.number && !(before && (of.number != 0) == about.reverse);
      }
      for (int k = by_turn ? 1 : 0; k < n.arity; ++k)
        if (in[k] >= 0) read_otherwise_[in[k]] = true;  // else it is in registers
    }
  }
  [[XLA_PLANS]] void scatter(int v, int maker, int reader, int input) {
    const step &s = out_.step_at(reader), &m = out_.step_at(maker);
    int made = 0;
    while (output(m, made) != v) ++made;
    made += m.inputs;
    loop_type &writes = loop_of(m), &reads = loop_of(s);
    if (!writes.may_scatter(made) || !reads.may_scatter(input)) return;
    const auto trip = static_cast<int>(trip_of(s));
    if (trip < 2 || trip_of(m) != trip || out_.shapes[v][0] != trip) return;
    const std::int64_t bytes = out_.placements[v].bytes / trip;
    const bool reverse = value(s.value).template attributes<op::loop>().reverse;
    for (column& c : columns_) {
      if (c.used + bytes > c.bytes) continue;
      list<place_of_row> rows;
      for (int row = 0; row < trip; ++row) {
        const int next = reverse ? row - 1 : row + 1;
        if (next < 0 || next == trip) rows.push_back({v, 0});
        else rows.push_back({c.values[next], c.used});
      }
      c.used += (bytes + alignment - 1) / alignment * alignment;
      for (int g : c.values) out_.placements[g].offset = -1;  // donated
      out_.placements[v].bytes = bytes;
      writes.scatter(made, rows);
      reads.scatter(input, rows);
      return;
    }
  }

  dependent<In, plan>& out_;
  const program& p_;
  list<column> columns_;
  list<char> read_otherwise_;
};

}  // namespace xla::detail
