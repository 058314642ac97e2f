// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass that removes nodes whose results nothing needs. Nodes with effects, such as random draws
// and exchanges between replicas, always stay (graph.hpp, runs_anyway).

#include "xla/transform/pass.hpp"

namespace xla::detail {

/// Removes unneeded nodes. Nodes that wait for one wait for its first input instead.
constexpr void drop_dead(pass_state& s) {
  s.mark_needed(s.live);
  s.dropped = true;
  for (int i = s.g.after_leaves(); i < s.g.count; ++i) {
    node& n = s.g.nodes[i];
    if (!s.live[i] || (n.after[0] < 0 && n.after[1] < 0)) continue;
    for (int& before : n.after)
      while (before >= 0 && !s.live[before])
        before = s.g.nodes[before].arity > 0 ? s.g.inputs(s.g.nodes[before])[0] : -1;
  }
}

}  // namespace xla::detail
