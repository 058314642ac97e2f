// SPDX-License-Identifier: Apache-2.0
#pragma once

// The order in which the gradient of a loop visits the nodes of its body and the outside values
// that they read. It records nothing; loop_backward.hpp does.

#include <utility>

#include "xla/graph/loops.hpp"
#include "xla/transform/backward.hpp"

namespace xla::detail {

/// The order in which the backward pass visits the nodes of a loop's body, and the outside values
/// that it reads.
class loop_body_order {
 public:
  /// See loop_rules.
  static constexpr bool order(graph_backward& of, int at, int* stack, int& top) {
    const node& n = of.g.nodes[at];
    if (given_by_loop(n) != 0) return true;
    if (made_by_loop(n) == 0) return false;
    if (is<op::loop>(n)) order_body(of, at, stack, top);
    else stack[top++] = n.in[0];
    return true;
  }
  /// See loop_rules. A loop-invariant node stays in the body that it was recorded in, and its
  /// gradients are joined in each step. The exception is a node that something outside reads, too,
  /// as the loop that goes back through this one does for gradients of gradients: that node is
  /// outside.
  static constexpr void find_homes(graph_backward& of, const int* from, int count) {
    const graph& g = of.g;
    int* const homes = of.homes = of.for_homes_.renew(room(of.root));
    for (int i = 0; i <= of.root; ++i) homes[i] = none;
    for (int k = 0; k < count; ++k) homes[from[k]] = g.loop;
    int recorded = g.loop;
    for (int i = of.root; i >= 0; --i) {
      while (recorded != 0 && i < g.loops[recorded - 1].begin)
        recorded = g.loops[recorded - 1].parent;
      if (homes[i] >= 0) {
        homes[i] = around_both(g, homes[i], recorded);
        if (!in_loop(g, homes[i], g.nodes[i].loop)) homes[i] = g.nodes[i].loop;
        read_from(of, i);
      }
      if (is<op::loop>(g.nodes[i])) recorded = made_by_loop(g.nodes[i]);
    }
  }
  static constexpr bool outside(const graph_backward& of, int at, int number) {
    if (of_other_loop(of.g, at, number)) return true;
    return of.homes && at <= of.root && of.homes[at] >= 0 &&
           !in_loop(of.g, of.homes[at], number);
  }

 private:
  static constexpr int none = -1;
  static constexpr std::size_t room(int n) { return static_cast<std::size_t>(n) + 1; }

  static constexpr int around_both(const graph& g, int a, int b) {
    while (!in_loop(g, b, a)) a = g.loops[a - 1].parent;
    return a;
  }
  // The inputs that are read at a node; for a loop, the values that it passes on and stacks.
  static constexpr void read_from(graph_backward& of, int at) {
    const graph& g = of.g;
    const node& n = g.nodes[at];
    const int given = given_by_loop(n), made = given == 0 ? made_by_loop(n) : 0;
    const int* const in = g.inputs(n);
    const int yielded = is<op::loop>(n) ? n.attributes<op::loop>().carries : 0;
    for (int k = 0; k < n.arity; ++k) {
      const bool inside = k < yielded || (is<op::steps>(n) && k == 1);
      const int by = inside       ? made
                     : given != 0 ? g.loops[given - 1].parent
                                  : of.homes[at];
      int& home = of.homes[in[k]];
      if (is<op::loop>(g.nodes[in[k]]) || of.follows(in[k]))
        home = home < 0 ? by : around_both(g, home, by);
    }
  }

  // Depth first from the values that the steps pass on, and then all y. Outside values that the
  // body reads come before the initial values and xs.
  static constexpr void order_body(graph_backward& of, int loop, int* stack, int& top) {
    const graph& g = of.g;
    const int number = made_by_loop(g.nodes[loop]), begin = g.loops[number - 1].begin;
    const int carries = g.nodes[loop].attributes<op::loop>().carries;
    int ys = 0;
    for (int i = loop + 1; i <= of.root; ++i) ys += is<op::steps>(g.nodes[i]);
    const int most = 4 * (loop - begin) + g.lists.count + 2 * carries + ys;
    const owned_array<int> from_memory(room(most)), outside_memory(room(most));
    int *const from = from_memory.get(), *const outside = outside_memory.get();
    int own_top = 0, count = 0;
    for (int i = of.root; i > loop; --i)
      if (is<op::steps>(g.nodes[i]) && g.nodes[i].in[0] == loop && of.follows(g.nodes[i].in[1]))
        from[own_top++] = g.nodes[i].in[1];
    const int* const inputs = g.inputs(g.nodes[loop]);
    for (int k = carries - 1; k >= 0; --k)
      if (of.follows(inputs[k])) from[own_top++] = inputs[k];
    const int around = std::exchange(of.ordered, number);
    of.loops[number].first = of.find_order(begin, from, own_top, outside, count);
    of.ordered = around;
    for (int k = carries; k < 2 * carries; ++k)
      if (of.follows(inputs[k])) outside[count++] = inputs[k];
    for (int i = begin; i < loop; ++i)
      if (is<op::step_slice>(g.nodes[i]) && given_by_loop(g.nodes[i]) == number &&
          of.follows(g.nodes[i].in[0]))
        outside[count++] = g.nodes[i].in[0];
    of.loops[number].outside = count;
    for (int k = count - 1; k >= 0; --k) stack[top++] = outside[k];
  }
};

}  // namespace xla::detail
