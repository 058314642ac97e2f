// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that a graph is legal after a pass, and describes an error in one sentence. passes.hpp
// runs it in debug builds and on request; run/plan/verify.hpp checks plans.

#include "xla/transform/pass.hpp"

namespace xla::detail {

/// The invariants that every pass must preserve.
struct verifier {
  const pass_state& s;

  /// The error of node i as an op applied to others; nullptr if there is none.
  constexpr const char* as_node(int i) const {
    const node& n = s.g.nodes[i];
    // In constants a null op is an error where it is read; g++'s -fsanitize=undefined refuses to
    // ask.
    if (!__builtin_is_constant_evaluated() && !n.op) return "has no op";
    if (n.rank < 0 || n.rank > max_rank) return "has an impossible rank";
    if (n.arity > few_inputs && (n.in[0] < 0 || n.in[0] > s.g.lists.count - n.arity))
      return "has inputs that are in no list";
    const int* const in = s.g.inputs(n);
    for (int k = 0; k < n.arity; ++k) {
      if (in[k] < 0 || in[k] >= i) return "reads a node that does not come before it";
      if (n.op->kind == op_kind::reduce && s.g.nodes[in[k]].rank != n.rank)
        return "reduces to another rank";
    }
    for (int before : n.after)
      if (before >= i) return "waits for a node that does not come before it";
    return nullptr;
  }
  /// … as one that is replaced.
  constexpr const char* as_replaced(int i) const {
    const int by = s.to[i];
    if (by < 0 || by > i) return "is replaced by a later node";
    if (s.to[by] != by) return "is replaced by a node that is itself replaced";
    if (s.g.nodes[by].type != s.g.nodes[i].type) return "is replaced by another element type";
    return s.live[i] ? "is replaced and live" : nullptr;
  }
  /// … as one that is computed, when the steps have their places.
  constexpr const char* as_live(int i) const {
    const node& n = s.g.nodes[i];
    const bool alias = n.op->kind == op_kind::alias || n.op->kind == op_kind::output;
    for (int k = 0; k < n.arity; ++k) {
      const int in = s.g.inputs(n)[k];
      if (!s.live[in]) return "reads a node that was removed";
      if (!s.stage || (s.region_of[i] >= 0 && s.region_of[in] == s.region_of[i])) continue;
      if (s.stage_at(in) + !alias > s.stage_at(i)) return "runs before the nodes that it reads";
    }
    return nullptr;
  }
  constexpr const char* node_is(int i) const {
    if (s.to[i] != i) return as_replaced(i);
    if (const char* why = as_node(i)) return why;
    return s.live[i] ? as_live(i) : nullptr;
  }
};

/// A sentence about the first illegal node, or an empty one.
[[gnu::cold]] constexpr text verify(const pass_state& s) {
  const verifier v{s};
  for (int i = 0; i < s.g.count; ++i)
    if (const char* why = v.node_is(i)) return text("node ") << i << " " << why;
  for (int i = 0; i < s.roots.result_count; ++i)
    if (!s.live[s.to[s.roots.results[i]]]) return text("result ") << i << " was removed";
  for (int i = 0; i < s.roots.write_count; ++i)
    if (!s.live[s.to[s.roots.writes[i].value]]) return text("write ") << i << " was removed";
  return s.g.loop_count != 0 ? s.g.rules_of_loops->verify(s.g) : text();
}

}  // namespace xla::detail
