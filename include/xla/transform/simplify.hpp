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

  constexpr bool is(int i, std::string_view name) const { return g.nodes[i].op->name == name; }
  constexpr bool is_one(int i) const {
    return g.nodes[i].op == &constant_info && g.nodes[i].value == 1;
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
    for (int k = 0; k < n.arity; ++k) n.in[k] = to[n.in[k]];
    if (n.op == &detach_info) return n.in[0];
    if (n.op->kind == op_kind::map) return rewrite_map(i);
    if (n.op->name == op::reshape::name) {
      while (is(n.in[0], op::reshape::name)) n.in[0] = g.nodes[n.in[0]].in[0];
      return same_as(i, n.in[0]);
    }
    if (n.op->name == op::expand::name) return same_as(i, n.in[0]);
    if (n.op->name == op::matmul::name)
      for (int k = 0; k < 2; ++k) {
        const node& t = g.nodes[n.in[k]];
        if (t.op->name == op::permute::name && swaps_last_two(t)) {
          n.in[k] = t.in[0];
          n.attr ^= 1 << k;
        }
      }
    return i;
  }

  constexpr int rewrite_map(int i) {
    node& n = g.nodes[i];
    // The map broadcasts anyway, if an operand that stays has all its sizes.
    bool full = false;
    for (int k = 0; k < n.arity; ++k)
      full |= !is(n.in[k], op::expand::name) && same_dims(g.nodes[n.in[k]], n);
    for (int k = 0; full && k < n.arity; ++k)
      if (is(n.in[k], op::expand::name)) n.in[k] = g.nodes[n.in[k]].in[0];
    if (n.op->name == op::neg::name && is(n.in[0], op::neg::name)) return g.nodes[n.in[0]].in[0];
    if (n.op->name == op::mul::name && is_one(n.in[0])) return same_as(i, n.in[1]);
    if ((n.op->name == op::mul::name || n.op->name == op::div::name) && is_one(n.in[1]))
      return same_as(i, n.in[0]);
    return i;
  }
};

/// Rewrites the graph in place; to[i] is the node that now stands for node i.
constexpr void simplify(graph& g, int* to) {
  simplifier s{g, to};
  for (int i = 0; i < g.count; ++i) {
    for (int k = 0; k < g.nodes[i].rank; ++k) g.nodes[i].dims[k] = g.sizes.find(g.nodes[i].dims[k]);
    to[i] = s.rewrite(i);
  }
}

}  // namespace xla::detail
