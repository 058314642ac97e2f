// SPDX-License-Identifier: Apache-2.0
#pragma once

// The users of each node of a graph, kept up to date while a pass edits the graph. graph_editor.hpp
// uses it; the library's own passes do without.

#include <utility>

#include "xla/graph/graph.hpp"

namespace xla::detail {

/// The users of each node of a graph, kept up to date while a pass changes it.
class use_lists {
 public:
  struct use {
    int reader = -1;
    int operand = 0;  ///< the number of the input
    int next = -1;    ///< the next use of the same node, or -1
  };

  constexpr use_lists() = default;
  use_lists(const use_lists&) = delete;
  constexpr ~use_lists() {
    if (own_nodes_) delete[] nodes_;
    if (own_uses_) delete[] uses_;
  }

  /// Adds the nodes that have been added to the graph since the last call.
  [[gnu::cold]] constexpr void follow(const graph& g) {
    for (; count_ < g.count; ++count_) {
      if (count_ == capacity_) grow(nodes_, capacity_, own_nodes_);
      const node& n = g.nodes[count_];
      nodes_[count_] = {};
      const int* const in = g.inputs(n);
      for (int k = 0; k < n.arity; ++k) {
        if (use_count_ == use_capacity_) grow(uses_, use_capacity_, own_uses_);
        uses_[use_count_] = {count_, k, -1};
        give(use_count_++, in[k]);
      }
    }
  }
  /// The first use of a node, or -1.
  constexpr int first(int node) const { return nodes_[node].first; }
  constexpr const use& operator[](int u) const { return uses_[u]; }
  /// Removes all uses of a node, to give() each to another node.
  constexpr int take(int node) { return std::exchange(nodes_[node].first, -1); }
  constexpr void give(int u, int node) {
    uses_[u].next = nodes_[node].first;
    nodes_[node].first = u;
  }

  /// Marks a node and the nodes on which it depends, except those that a test excludes. Valid until
  /// the next call.
  template <class F>
  [[gnu::cold]] constexpr void mark_made_of(const graph& g, int last, const F& leaves_out) {
    ++marks_;
    int depth = 0;
    const auto see = [&](int i) {
      if (nodes_[i].mark == marks_ || leaves_out(i)) return;
      nodes_[i].mark = marks_;
      nodes_[depth++].waits = i;
    };
    see(last);
    while (depth > 0) {
      const node& n = g.nodes[nodes_[--depth].waits];
      const int* const in = g.inputs(n);
      for (int k = 0; k < n.arity; ++k) see(in[k]);
    }
  }
  constexpr bool marked(int node) const { return nodes_[node].mark == marks_; }

 private:
  struct of_node {
    int first = -1, mark = 0;
    int waits = -1;  // a stack of nodes, at most as many as there are
  };
  static constexpr int few = 16;
  of_node few_nodes_[few];
  use few_uses_[2 * few];
  of_node* nodes_ = few_nodes_;
  use* uses_ = few_uses_;
  int count_ = 0, use_count_ = 0, capacity_ = few, use_capacity_ = 2 * few;
  bool own_nodes_ = false, own_uses_ = false;
  int marks_ = 0;
};

}  // namespace xla::detail
