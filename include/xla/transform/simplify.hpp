// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/graph/graph.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reshape.hpp"

namespace xla::detail {

/// Local rewrites in one sweep, none of which changes a bit of any result:
///   detach(x) -> x                      map(expand(x)) -> map(x), which broadcasts
///   reshape(reshape(x)) -> reshape(x)   reshape(x) to x's own sizes -> x
///   x * 1, x / 1 -> x                   neg(neg(x)) -> x
///   matmul of a transpose -> matmul that reads transposed
struct simplifier {
  graph& g;
  int* to;  // what stands for each node now

  // By the ids: names take constant evaluation long to compare.
  static constexpr std::uint32_t expand = op_id(op::expand::name);
  static constexpr std::uint32_t reshape = op_id(op::reshape::name);
  static constexpr std::uint32_t permute = op_id(op::permute::name);
  static constexpr std::uint32_t matmul = op_id(op::matmul::name);
  static constexpr std::uint32_t neg = op_id(op::neg::name);
  static constexpr std::uint32_t mul = op_id(op::mul::name);
  static constexpr std::uint32_t div = op_id(op::div::name);

  constexpr bool is(int i, std::uint32_t id) const { return g.nodes[i].op->id == id; }
  constexpr bool is_one(int i) const {
    while (is(i, reshape) || is(i, expand)) i = g.nodes[i].in[0];
    return g.nodes[i].op->id == constant_info.id && g.nodes[i].value == 1;
  }
  constexpr int same_as(int i, int other) const {
    return same_dims(g.nodes[i], g.nodes[other]) ? other : i;
  }

  constexpr bool swaps_last_two(const node& n) const {
    for (int i = 0; i < n.rank; ++i) {
      const int expected = i == n.rank - 2 ? n.rank - 1 : i == n.rank - 1 ? n.rank - 2 : i;
      if (op::permute::source(n.attr, i) != expected) return false;
    }
    return n.rank >= 2;
  }

  constexpr int rewrite(int i) {
    node& n = g.nodes[i];
    const int arity = n.arity;
    if (arity == 0) return i;
    for (int k = 0; k < arity; ++k) n.in[k] = to[n.in[k]];
    const op_info& info = *n.op;
    if (info.kind == op_kind::map) return rewrite_map(i, info.id, arity);
    if (info.id == detach_info.id) return n.in[0];
    if (info.id == reshape) {
      while (is(n.in[0], reshape)) n.in[0] = g.nodes[n.in[0]].in[0];
      return same_as(i, n.in[0]);
    }
    if (info.id == expand) return same_as(i, n.in[0]);
    if (info.id == matmul)
      for (int k = 0; k < 2; ++k) {
        const node& t = g.nodes[n.in[k]];
        if (t.op->id == permute && swaps_last_two(t)) {
          n.in[k] = t.in[0];
          n.attr ^= 1 << k;
        }
      }
    return i;
  }

  [[gnu::cold]] constexpr int rewrite_map(int i, std::uint32_t id, int arity) {
    node& n = g.nodes[i];
    int expanded = 0;  // operands, a bit each
    for (int k = 0; k < arity; ++k)
      if (g.nodes[n.in[k]].op->id == expand) expanded |= 1 << k;
    if (expanded != 0) drop_expanded(n, expanded);
    if (id == neg && is(n.in[0], neg)) return g.nodes[n.in[0]].in[0];
    if (id == mul && is_one(n.in[0])) return same_as(i, n.in[1]);
    if ((id == mul || id == div) && is_one(n.in[1])) return same_as(i, n.in[0]);
    return i;
  }
  // The map broadcasts anyway, if an operand that stays has all its sizes.
  constexpr void drop_expanded(node& n, int expanded) {
    bool full = false;
    for (int k = 0; k < n.arity; ++k)
      full |= (expanded >> k & 1) == 0 && same_dims(g.nodes[n.in[k]], n);
    for (int k = 0; full && k < n.arity; ++k)
      if (expanded >> k & 1) n.in[k] = g.nodes[n.in[k]].in[0];
  }
};

/// Rewrites the graph in place; to[i] is the node that now stands for node i.
constexpr void simplify(graph& g, int* to) {
  simplifier s{g, to};
  bool unified = false;
  for (int i = 0; i < g.sizes.symbol_count; ++i) unified |= g.sizes.symbols[i].same_as != -1;
  for (int i = 0; i < g.count; ++i) {
    for (int k = 0; unified && k < g.nodes[i].rank; ++k)
      g.nodes[i].dims[k] = g.sizes.find(g.nodes[i].dims[k]);
    to[i] = s.rewrite(i);
  }
}

}  // namespace xla::detail
