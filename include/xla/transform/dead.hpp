// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/graph/graph.hpp"

namespace xla::detail {

/// Marks what the roots need: live[i] on entry says that node i is a root, on return that something
/// needs it. Checks stay: they may throw.
constexpr void mark_live(const graph& g, const int* to, bool* live) {
  for (int i = g.count - 1; i >= 0; --i) {
    const node& n = g.nodes[i];
    if (!live[i]) {
      if (to[i] != i || !n.op->check) continue;
      live[i] = true;
    }
    const int arity = n.arity;
    for (int k = 0; k < arity; ++k) live[n.in[k]] = true;
  }
}

}  // namespace xla::detail
