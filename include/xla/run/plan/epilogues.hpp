// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds maps that can run on the result of a convolution while it is in the cache. It only marks
// the pairs; run/execute/epilogue.hpp runs them.

#include <algorithm>
#include <utility>

#include "xla/base/later.hpp"
#include "xla/base/list.hpp"
#include "xla/run/plan/plan.hpp"

namespace xla::detail {

/// Finds maps that read what a convolution has just made: bias, normalization, activation, sum with
/// another image. They run on its result part by part while that is in the cache, and if nobody
/// else reads it, in its place. The two steps come to stand next to each other; bits do not change.
template <class In>
class basic_epilogue_finder {
 public:
  using runner = decltype(step_group::on_parts);
  /// once: per step of the program, it does not run in each call; run: what runs the two.
  basic_epilogue_finder(later<In, plan>& out, const list<char>& once, runner run)
      : out_(out), p_(out.source), once_(once), run_(run) {}

  [[gnu::cold]] void run() {
    made_.assign(p_.count.values, -1);
    for (int i = 0; i < p_.count.steps; ++i) note(i);
    for (int i = 1; i < p_.count.steps; ++i)
      if (out_.step_at(i).kind == step_kind::map && out_.group_of[i] < 0 && !is_once(i)) try_map(i);
  }

 private:
  /// Steps further apart are not brought together.
  static constexpr int window = 16;

  int base(int v) const { return out_.base[v]; }
  int input(const step& s, int k) const { return p_.inputs[s.first_input + k]; }
  int output(const step& s, int k) const { return p_.outputs[s.first_output + k]; }
  bool is_once(int i) const { return once_[out_.order[i]]; }
  void note(int i) {
    const step& s = out_.step_at(i);
    for (int k = 0; k < s.outputs; ++k) made_[output(s, k)] = i;
  }
  bool tells(int i) const {
    const step& s = out_.step_at(i);
    if (s.kind != step_kind::library) return false;
    const plan_hooks* const hooks = p_.values[s.value].op->plan;
    return hooks && hooks->epilogues && out_.group_of[i] < 0 && !is_once(i);
  }

  /// The last step before a map that makes what it reads element by element, as it lies in memory.
  [[gnu::cold]] void try_map(int i) {
    const step& s = out_.step_at(i);
    const shape space = value_at(out_.symbols, p_.spaces[s.space]);
    int maker = -1;
    for (int k = 0; k < s.inputs; ++k) {
      const int v = input(s, k), at = made_[base(v)];
      if (at > maker && i - at <= window && tells(at) && out_.shapes[v] == space &&
          same_rows(out_.shapes[base(v)], space))
        maker = at;
    }
    if (maker < 0) return;
    if (reads_between(maker, i)) {
      if (waits(i, maker)) return;
      move(i, maker + 1);
      i = maker + 1;
    } else {
      move(maker, i - 1);
    }
    step_group g;
    g.first = i - 1;
    g.last = i;
    g.on_parts = run_;
    out_.group_of[i - 1] = out_.group_of[i] = out_.groups.size();
    out_.groups.push_back(g);
  }
  /// Whether rows of the last axis are the same in both, and there is something to a row.
  static bool same_rows(const shape& a, const shape& b) {
    return a.rank > 1 && b.rank > 1 && a[a.rank - 1] == b[b.rank - 1] && b[b.rank - 1] > 1;
  }
  /// Whether a step between reads what the maker makes, or writes a slot that it may read.
  [[gnu::cold]] bool reads_between(int maker, int i) const {
    const step& m = out_.step_at(maker);
    for (int j = maker + 1; j < i; ++j) {
      const step& s = out_.step_at(j);
      for (int k = 0; k < s.inputs; ++k)
        if (base(input(s, k)) == m.value) return true;
      for (int k = 0; k < s.outputs; ++k)
        if (out_.places[output(s, k)].where == place::write) return true;
    }
    return false;
  }
  /// Whether a map cannot run right behind the maker: it reads what is made later, or writes what
  /// others may still read.
  [[gnu::cold]] bool waits(int i, int maker) const {
    const step& s = out_.step_at(i);
    for (int k = 0; k < s.inputs; ++k)
      if (made_[base(input(s, k))] > maker) return true;
    for (int k = 0; k < s.outputs; ++k)
      if (out_.places[output(s, k)].where == place::write) return true;
    return false;
  }
  /// Steps between move by one, and so do groups of them.
  [[gnu::cold]] void move(int from, int to) {
    if (from == to) return;
    const int by = from < to ? 1 : -1;
    for (step_group& g : out_.groups)
      if (g.first >= std::min(from, to) && g.last <= std::max(from, to)) {
        g.first -= by;
        g.last -= by;
      }
    for (int i = from; i != to; i += by) {
      std::swap(out_.order[i], out_.order[i + by]);
      std::swap(out_.group_of[i], out_.group_of[i + by]);
      note(i);
    }
    note(to);
  }

  later<In, plan>& out_;
  const program& p_;
  const list<char>& once_;
  const runner run_;
  list<int> made_;  // per value: the place of the step that makes it, or -1
};
using epilogue_finder = basic_epilogue_finder<void>;

}  // namespace xla::detail
