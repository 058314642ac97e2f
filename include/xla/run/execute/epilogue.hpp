// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs maps on the parts of a convolution's result as they become complete, while they are in the
// cache: finds such pairs of steps in a plan, and runs them. kernel/fused/epilogue.hpp keeps track
// of complete parts.

#include <algorithm>
#include <optional>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/kernel/fused/epilogue.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/run/execute/tile.hpp"
#include "xla/run/plan/plan.hpp"
#if defined(XLA_RUNTIME_SOURCE)
#include "xla/run/execute/register_epilogue.hpp"
#endif

namespace xla::detail {

/// Finds maps that read the result of a convolution: bias, normalization, activation, sum with
/// another image. They run on the result part by part while it is in the cache, and in place if
/// nothing else reads it. The two steps become neighbours; bits do not change.
template <class In>
class basic_epilogue_finder {
 public:
  using runner = decltype(step_group::run);
  /// once: per step of the program, whether it runs only when memory is made; run: runs the two.
  basic_epilogue_finder(dependent<In, plan>& out, const list<char>& once, runner run)
      : out_(out), p_(out.source), once_(once), run_(run) {}

  [[gnu::cold]] void run() {
    made_.assign(p_.count.values, -1);
    for (int i = 0; i < p_.count.steps; ++i) note(i);
    for (int i = 1; i < p_.count.steps; ++i)
      if (out_.step_at(i).kind == step_kind::map && out_.group_of[i] < 0 && !is_once(i)) try_map(i);
  }

 private:
  /// Steps further apart than this are not brought together.
  static constexpr int window = 16;

  int base(int v) const { return out_.base[v]; }
  int input(const step& s, int k) const { return p_.inputs[s.first_input + k]; }
  int output(const step& s, int k) const { return p_.outputs[s.first_output + k]; }
  bool is_once(int i) const { return once_[out_.order[i]]; }
  void note(int i) {
    const step& s = out_.step_at(i);
    for (int k = 0; k < s.outputs; ++k) made_[output(s, k)] = i;
  }
  bool notifies(int i) const {
    const step& s = out_.step_at(i);
    if (s.kind != step_kind::library) return false;
    const plan_hooks* const hooks = p_.values[s.value].op->plan;
    return hooks && hooks->epilogues && out_.group_of[i] < 0 && !is_once(i);
  }

  /// The last step before a map that computes its input element by element in the same memory
  /// order.
  [[gnu::cold]] void try_map(int i) {
    const step& s = out_.step_at(i);
    const shape space = value_at(out_.symbols, p_.spaces[s.space]);
    int maker = -1;
    for (int k = 0; k < s.inputs; ++k) {
      const int v = input(s, k), at = made_[base(v)];
      if (at > maker && i - at <= window && notifies(at) && out_.shapes[v] == space &&
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
    g.run = run_;
    out_.group_of[i - 1] = out_.group_of[i] = out_.groups.size();
    out_.groups.push_back(g);
  }
  /// Whether the rows of the last axis are the same in both, and long enough.
  static bool same_rows(const shape& a, const shape& b) {
    return a.rank > 1 && b.rank > 1 && a[a.rank - 1] == b[b.rank - 1] && b[b.rank - 1] > 1;
  }
  /// Whether a step in between reads the maker's result, or writes a slot that it may read.
  [[gnu::cold]] bool reads_between(int maker, int i) const {
    const step& m = out_.step_at(maker);
    for (int j = maker + 1; j < i; ++j) {
      const step& s = out_.step_at(j);
      for (int k = 0; k < s.inputs; ++k)
        if (base(input(s, k)) == m.value) return true;
      for (int k = 0; k < s.outputs; ++k)
        if (out_.placements[output(s, k)].where == storage::write) return true;
    }
    return false;
  }
  /// Whether a map cannot run right after the maker: it reads a later result, or writes memory that
  /// others may still read.
  [[gnu::cold]] bool waits(int i, int maker) const {
    const step& s = out_.step_at(i);
    for (int k = 0; k < s.inputs; ++k)
      if (made_[base(input(s, k))] > maker) return true;
    for (int k = 0; k < s.outputs; ++k)
      if (out_.placements[output(s, k)].where == storage::write) return true;
    return false;
  }
  /// Steps in between move by one, and so do groups.
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

  dependent<In, plan>& out_;
  const program& p_;
  const list<char>& once_;
  const runner run_;
  list<int> made_;  // per value: the index of the step that makes it, or -1
};
using epilogue_finder = basic_epilogue_finder<void>;

/// Runs a step by `maker`, which notifies the epilogue that it gets, and a map on the parts of its
/// result.
template <class In, class Maker>
void run_with_map(const dependent<In, plan>& p, const ready_step& map, void* const* pointers,
                  const Maker& maker) {
  dependent<In, std::optional<tile_region>> region;
  kernel::tile_kernel kernel{map.kernel.map};
  if (!map.kernel.map) kernel = region.emplace(p.source, *map.source).kernel();
  const kernel::loop_nest loops = p.loops[map.loops];
  const kernel::map_rows rows(loops, kernel, pointers);
  const auto some = [](const void* self, std::int64_t first, std::int64_t last) {
    static_cast<const kernel::map_rows*>(self)->run(first, last);
  };
  const kernel::epilogue after(rows.rows(), rows.columns(), rows.row_bytes(), some, &rows);
  maker(after);
  after.rest(rows.columns() * map.ops);
}

/// Runs the first step of a group, and the second, a map, on the parts of its result.
template <class In>
void run_with_epilogue(const dependent<In, plan>& p, const step_group& g, void* const* table,
                       std::byte*) {
  const ready_step& map = p.steps[g.last];
  void* pointers[kernel::max_operands];
  for (int k = 0; k < map.operands; ++k) pointers[k] = table[p.operands[map.first_operand + k]];
#if defined(XLA_RUNTIME_SOURCE)
  const ready_step& made = p.steps[g.first];
  void* of_made[kernel::max_operands];
  for (int k = 0; k < made.operands; ++k) of_made[k] = table[p.operands[made.first_operand + k]];
  buffer* const cache_owner =
      made.cache_owner < 0 ? nullptr : static_cast<buffer*>(table[made.cache_owner]);
  if (run_in_registers(p, made, of_made, p.operand_shapes.begin() + made.first_shape, cache_owner,
                       map, pointers))
    return;
#endif
  run_with_map<In>(p, map, pointers, [&](const kernel::epilogue& after) {
    run_step<In>(p, p.steps[g.first], table, nullptr, &after);
  });
}

#if defined(XLA_RUNTIME_SOURCE)
/// Only the library has it: image_groups.hpp.
template <class In>
void find_images(plan_steps& steps);
#endif

template <class In>
[[gnu::cold]] void find_epilogues(plan_steps& steps) {
#if defined(XLA_RUNTIME_SOURCE)
  find_images<In>(steps);
#endif
  dependent<In, epilogue_finder>(steps.of, steps.once, &run_with_epilogue<In>).run();
}
XLA_INSTANCE(void find_epilogues<void>(plan_steps&));

}  // namespace xla::detail
