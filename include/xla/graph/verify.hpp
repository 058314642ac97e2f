// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/graph/graph.hpp"

namespace xla::detail {

/// What every pass must leave behind: a sentence about the first node that is not legal, or nothing.
/// to names the node that stands for each node; only nodes that stand for themselves are looked at.
[[gnu::cold]] constexpr text verify(const graph& g, const int* to) {
  for (int i = 0; i < g.count; ++i) {
    const node& n = g.nodes[i];
    text at;
    at << "node " << i << ": ";
    if (to[i] < 0 || to[i] > i) return at << "is replaced by a later node";
    if (to[i] != i) {
      if (to[to[i]] != to[i]) return at << "is replaced by a node that is itself replaced";
      if (g.nodes[to[i]].type != n.type) return at << "is replaced by another element type";
      continue;
    }
    if (!n.op) return at << "has no op";
    if (n.rank < 0 || n.rank > max_rank) return at << "has an impossible rank";
    for (int k = 0; k < n.arity; ++k) {
      if (n.in[k] < 0 || n.in[k] >= i) return at << "reads a node that does not come before it";
      if (n.op->kind == op_kind::reduce && g.nodes[n.in[k]].rank != n.rank)
        return at << "reduces to another rank";
    }
  }
  return {};
}

}  // namespace xla::detail
