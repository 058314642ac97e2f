// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass of local rewrites, such as removing a reshape that changes nothing. No rewrite changes a
// bit of a result, so there is no reassociation; share.hpp merges equal nodes.

#include "xla/op/arithmetic.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/where.hpp"
#include "xla/transform/pass.hpp"

namespace xla::detail {

/// Local rewrites in one sweep, none of which changes a bit of any result:
///   detach(x), result(x, f) -> x        map(expand(x)) -> map(x), which broadcasts
///   reshape(reshape(x)) -> reshape(x)   reshape(x) to x's own sizes -> x
///   x * 1, x / 1 -> x                   neg(neg(x)) -> x
///   where(c, 1, 0) * where(c, x, 0) -> where(c, x, 0), also of -where(c, x, 0)
///   matmul of a transpose -> matmul that reads transposed
struct simplifier {
  graph& g;
  int* to;  // each node's current replacement

  template <class Op>
  constexpr bool made_by(int i) const {
    return is<Op>(g.nodes[i]);
  }
  constexpr bool is_one(int i) const {
    while (made_by<op::reshape>(i) || made_by<op::expand>(i)) i = g.nodes[i].in[0];
    return made_by<op::constant>(i) && g.nodes[i].attributes<op::constant>().value == 1;
  }
  constexpr int reshaped(int i) const { return made_by<op::reshape>(i) ? g.nodes[i].in[0] : i; }
  constexpr bool is_zero(int i) const {
    const auto& n = g.nodes[i];
    return is<op::constant>(n) && n.attributes<op::constant>().value == 0;
  }
  constexpr int same_as(int i, int other) const {
    return same_dims(g.nodes[i], g.nodes[other]) ? other : i;
  }

  [[gnu::cold]] constexpr bool swaps_last_two(const node& n) const {
    const axis_order order = n.attributes<op::permute>().order;
    for (int i = 0; i < n.rank; ++i) {
      const int expected = i == n.rank - 2 ? n.rank - 1 : i == n.rank - 1 ? n.rank - 2 : i;
      if (order[i] != expected) return false;
    }
    return n.rank >= 2;
  }

  /// Reads a transpose's input instead; false if there is none.
  [[gnu::cold]] constexpr bool read_transposed(int& in) const {
    const node& t = g.nodes[in];
    const bool found = is<op::permute>(t) && swaps_last_two(t);
    if (found) in = t.in[0];
    return found;
  }
  [[gnu::cold]] constexpr int rewrite(int i) {
    node& n = g.nodes[i];
    const int arity = n.arity;
    if (arity == 0) return i;
    int* const in = g.inputs(n);
    for (int k = 0; k < arity; ++k) in[k] = to[in[k]];
    const op_info& info = *n.op;
    if (info.kind == op_kind::map) return rewrite_map(i, info, arity);
    if (is<op::detach>(info) || is<op::result>(info)) return n.in[0];
    if (is<op::reshape>(info)) {
      while (made_by<op::reshape>(n.in[0])) n.in[0] = g.nodes[n.in[0]].in[0];
      return same_as(i, n.in[0]);
    }
    if (is<op::expand>(info)) return same_as(i, n.in[0]);
    if (is<op::matmul>(info)) {
      const bool a = read_transposed(n.in[0]), b = read_transposed(n.in[1]);
      const auto was = n.attributes<op::matmul>();
      if (a || b)
        n.set<op::matmul>({was.transpose_a != a, was.transpose_b != b, was.precision, false, false,
                           was.of_steps});
    }
    return i;
  }

  [[gnu::cold]] constexpr int rewrite_map(int i, const op_info& info, int arity) {
    node& n = g.nodes[i];
    int expanded = 0;  // operands, a bit each
    for (int k = 0; k < arity; ++k)
      if (made_by<op::expand>(n.in[k])) expanded |= 1 << k;
    if (expanded != 0) drop_expanded(n, expanded);
    if (is<op::neg>(info) && made_by<op::neg>(n.in[0])) return g.nodes[n.in[0]].in[0];
    if (is<op::mul>(info) && is_one(n.in[0])) return same_as(i, n.in[1]);
    if ((is<op::mul>(info) || is<op::div>(info)) && is_one(n.in[1])) return same_as(i, n.in[0]);
    if (int c = 0; is<op::mul>(info) && shows(n.in[0], c) && is_hidden(n.in[1], c))
      return same_as(i, n.in[1]);
    return i;
  }
  // where(c, 1, 0): the gradient of a sum of selected elements.
  [[gnu::cold]] constexpr bool shows(int i, int& c) const {
    const node& n = g.nodes[i];
    if (!is<op::where>(n) || !is_one(n.in[1]) || !is_zero(n.in[2])) return false;
    c = reshaped(n.in[0]);
    return same_dims(g.nodes[n.in[0]], n);
  }
  // A value that is 0, or minus 0, where c does not hold.
  [[gnu::cold]] constexpr bool is_hidden(int i, int c) const {
    i = reshaped(i);
    if (made_by<op::neg>(i)) i = g.nodes[i].in[0];
    const node& n = g.nodes[i];
    return is<op::where>(n) && reshaped(n.in[0]) == c && is_zero(n.in[2]) &&
           same_dims(g.nodes[n.in[0]], n);
  }
  // The map broadcasts anyway, if a remaining operand has all its sizes.
  [[gnu::cold]] constexpr void drop_expanded(node& n, int expanded) {
    bool full = false;
    for (int k = 0; k < n.arity; ++k)
      full |= (expanded >> k & 1) == 0 && same_dims(g.nodes[n.in[k]], n);
    for (int k = 0; full && k < n.arity; ++k)
      if (expanded >> k & 1) n.in[k] = g.nodes[n.in[k]].in[0];
  }
};

[[gnu::cold]] constexpr void simplify(pass_state& s) {
  graph& g = s.g;
  simplifier rules{g, s.to};
  bool unified = false;
  for (int i = 0; i < g.sizes.symbol_count; ++i) unified |= g.sizes.symbols[i].same_as != -1;
  for (int i = unified ? 0 : g.after_leaves(); i < g.count; ++i) {
    for (int k = 0; unified && k < g.nodes[i].rank; ++k)
      g.nodes[i].dims[k] = g.sizes.find(g.nodes[i].dims[k]);
    if (is<op::input>(g.nodes[i])) continue;
    s.replace(i, rules.rewrite(i));
    s.follow_replaced(g.nodes[i]);
  }
}

}  // namespace xla::detail
