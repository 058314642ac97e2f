// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass that moves random draws just before their first reader. It changes when numbers are
// drawn, not which: these follow from the order of recording.

#include "xla/transform/pass.hpp"

namespace xla::detail {

/// Sinks random draws: numbers are drawn just before the first step that reads them, so that they
/// do not occupy memory from the start.
[[gnu::cold]] constexpr void sink_draws(pass_state& s) {
  const graph& g = s.g;
  s.place_alone();
  int last = 0, drawn = 0;
  for (int i = g.after_leaves(); i < g.count; ++i) {
    if (!s.live[i]) continue;
    drawn += g.nodes[i].op->impure;
    if (s.stage_at(i) > last) last = s.stage_at(i);
  }
  if (drawn == 0) return;
  const owned_array<int> memory(s.room());
  int* const wanted = memory.get();  // the stage of the first reader
  for (int i = 0; i < g.count; ++i) wanted[i] = last + 1;
  for (int i = g.count - 1; i >= 0; --i) {
    if (!s.live[i]) continue;
    const node& n = g.nodes[i];
    const bool alias = n.op->kind == op_kind::alias || n.op->kind == op_kind::output;
    const bool moves = alias || (n.op->impure && wanted[i] <= last);
    if (moves && wanted[i] > s.stage[i]) s.stage[i] = wanted[i] - 1;
    const int at = alias ? wanted[i] : s.stage_at(i);
    const int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k)
      if (at < wanted[in[k]]) wanted[in[k]] = at;
  }
}

}  // namespace xla::detail
