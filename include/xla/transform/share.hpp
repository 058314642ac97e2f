// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass that merges nodes which compute the same. It compares whole nodes by a hash table;
// algebra is simplify.hpp.

#include <bit>

#include "xla/transform/pass.hpp"

namespace xla::detail {

/// Common subexpression elimination: nodes that compute the same become one. A hash table without
/// sorting, in linear time.
struct sharer {
  graph& g;
  int* to;
  int* table;
  int slots;

  static constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
    return (h ^ (v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2))) * 0xff51afd7ed558ccdull;
  }
  // Few operations, for constant evaluation; sizes distinguish values without inputs.
  static constexpr std::uint64_t hash(const node& n, const int* in) {
    std::uint64_t h = n.op->id + n.attr.hash();
    const int arity = n.arity;
    for (int k = 0; k < arity; ++k) h = 0x10001a3ull * h + static_cast<std::uint64_t>(in[k]);
    if (arity == 0 || n.op->kind == op_kind::alias)
      for (int k = 0; k < n.rank; ++k) h = mix(h, static_cast<std::uint64_t>(n.dims[k]));
    // Mixed, because consecutive numbers would form one long run in the table.
    return (h ^ h >> 32) * 0x9e3779b97f4a7c15ull >> 24;
  }
  constexpr bool equal(const node& a, const node& b, const int* inputs) const {
    if (!same_record(a, b) || a.loop != b.loop) return false;
    // A node that is computed again to save memory does not equal the original.
    if (a.after[0] != b.after[0] || a.after[1] != b.after[1]) return false;
    const int* const in = g.inputs(a);
    for (int k = 0; k < a.arity; ++k)
      if (in[k] != inputs[k]) return false;
    return true;
  }

  [[gnu::cold]] constexpr int find(int i) {
    node& n = g.nodes[i];
    int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) in[k] = to[in[k]];
    if (n.op->commutative && n.in[0] > n.in[1]) {
      const int t = n.in[0];
      n.in[0] = n.in[1];
      n.in[1] = t;
    }
    if (n.op->impure || n.op->exchanges) return i;
    int at = static_cast<int>(hash(n, in) & static_cast<std::uint64_t>(slots - 1));
    for (; table[at] >= 0; at = (at + 1) & (slots - 1))
      if (equal(g.nodes[table[at]], n, in)) return table[at];
    return table[at] = i;
  }
};

[[gnu::cold]] constexpr void share(pass_state& s) {
  int slots = 16;
  while (slots < 2 * (s.g.count - s.g.after_leaves())) slots *= 2;
  const owned_array<int> memory(static_cast<std::size_t>(slots));
  int* const table = memory.get();
  for (int i = 0; i < slots; ++i) table[i] = -1;
  sharer equals{s.g, s.to, table, slots};
  for (int i = s.g.after_leaves(); i < s.g.count; ++i) {
    // A slot has one such node for its value and one for its gradient.
    if (is<op::input>(s.g.nodes[i])) continue;
    s.replace(i, s.to[i] == i ? equals.find(i) : s.to[s.to[i]]);
    s.follow_replaced(s.g.nodes[i]);
  }
}

}  // namespace xla::detail
