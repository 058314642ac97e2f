// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the nodes of checkpointed segments again, for the gradient rules that read them.
// backward() over a captured graph uses it; loop_replay.hpp handles graphs with loops.

#include "xla/base/owned_array.hpp"
#include "xla/graph/graph.hpp"

namespace xla::detail {

template <class Context>
class loop_replay;

/// The nodes of checkpointed segments that backward reads, recorded again from the segment's
/// inputs. The copies wait for the loss and for the gradient that needs them, so that they are
/// computed late, and the originals are freed early. A segment within a segment is recorded again
/// for the outer one, and once more when backward arrives at it. Chen et al. (2016).
class graph_replay {
 public:
  constexpr graph_replay(graph& in, int loss) : g(in), root(loss), nodes_(in.count) {
    if (g.segment_count > 0) start();
  }
  graph_replay(const graph_replay&) = delete;
  graph_replay& operator=(const graph_replay&) = delete;

  /// The node that a gradient rule reads for node i: itself, or its copy. Copies come after the
  /// gradient's node.
  constexpr int value(int i, int gradient) {
    const int s = i < nodes_ ? g.nodes[i].segment : 0;
    if (s == 0 || g.within(g.segment, s)) return i;
    if (!done_[s]) record(s, gradient);
    return copy_[index_of(i, s)];
  }

 private:
  template <class>
  friend class loop_replay;
  constexpr void start() {
    const auto n = static_cast<std::size_t>(nodes_);
    done_ = for_done_.renew(static_cast<std::size_t>(g.segment_count) + 1);
    for (int s = 0; s <= g.segment_count; ++s) done_[s] = false;
    for (int s = 1; s <= g.segment_count; ++s)
      if (depth(s) > levels_) levels_ = depth(s);
    copy_ = for_copy_.renew(static_cast<std::size_t>(levels_) * n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(levels_) * n; ++i) copy_[i] = -1;
    fixed_ = for_fixed_.renew(n);
    random_ = for_random_.renew(n);
    int drawn = 0;
    for (int i = 0; i < nodes_; ++i) {
      const node& m = g.nodes[i];
      fixed_[i] = !is<op::input>(m) && !is<op::scalar>(m) && !m.op->impure;
      const int* const in = g.inputs(m);
      for (int k = 0; k < m.arity; ++k) fixed_[i] = fixed_[i] && fixed_[in[k]];
      if (m.op->impure)
        random_[i] = draws_again(m) ? drawn++ : int{m.attributes<op::drawing>().again};
    }
  }

  constexpr int depth(int s) const {
    int d = 0;
    for (; s != 0; s = g.segments[s - 1].parent) ++d;
    return d;
  }
  constexpr std::size_t index_of(int i, int s) const {
    return static_cast<std::size_t>(depth(s) - 1) * static_cast<std::size_t>(nodes_) +
           static_cast<std::size_t>(i);
  }

  constexpr void record(int s, int gradient) {
    done_[s] = true;
    const segment_range range = g.segments[s - 1];
    for (int i = range.begin; i < range.end; ++i)
      if (g.within(g.nodes[i].segment, s)) copy_[index_of(i, s)] = copy(i, s, gradient);
  }

  // Values that depend on sizes alone are always available, and indices have been checked.
  constexpr int copy(int i, int s, int gradient) {
    node n = g.nodes[i];
    if (fixed_[i] || n.op->kind == op_kind::leaf) return i;
    g.lists.own(n);
    for (int k = 0; k < n.arity; ++k) {
      const int was = g.inputs(n)[k];
      const bool inside = g.within(g.nodes[was].segment, s);
      const int in = inside ? copy_[index_of(was, s)] : value(was, gradient);
      g.inputs(n)[k] = in;  // looked up again: copied nodes may have lists
    }
    if (n.op->check) return n.in[0];
    if (n.op->impure) n.set<op::drawing>({.again = random_[i]});
    if (is<op::detach>(n)) {
      n.set<op::detach>({});
      n.needs_grad = n.input_grad = false;
    }
    if (!g.recording) n.needs_grad = n.input_grad = false;
    n.after[0] = gradient;
    n.after[1] = root;
    return g.add(n);
  }

  graph& g;
  int root;
  int nodes_;       // the original nodes
  int levels_ = 0;  // the nesting depth of segments
  owned_array<int> for_copy_, for_random_;
  owned_array<bool> for_fixed_, for_done_;
  int* copy_ = nullptr;    // per level and node: its replacement
  int* random_ = nullptr;  // per random node: the number of its draw
  bool* fixed_ = nullptr;  // per node: depends on nothing but constants and sizes
  bool* done_ = nullptr;   // per segment
};

}  // namespace xla::detail
