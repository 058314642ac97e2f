// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recomputes checkpointed values for the gradient of a loop, inside or outside of its body.
// loop_backward.hpp uses it; graphs without loops use replay.hpp.

#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/transform/loop_recorder.hpp"
#include "xla/transform/replay.hpp"

namespace xla::detail {

/// Replicas do not exchange again.
constexpr void refuse_again(graph& g, const node& n) {
  if (n.op->exchanges)
    g.sizes.refused.set(
        "xla: the body of a loop in which replicas exchange cannot run again for its gradients: "
        "leave out checkpoint_every, and xla::checkpoint in it");
}
/// A step that runs again uses its saved random numbers, and draws none.
constexpr bool result_of_steps(const node& n) { return n.op->impure && n.loop != 0; }

/// Records nodes again at the end of the graph, in their order, with the loops among them.
class node_copier {
 public:
  constexpr explicit node_copier(graph& in)
      : g(in), loops_(in.loop_count), copies_(static_cast<std::size_t>(loops_) + 1),
        nodes_(static_cast<std::size_t>(loops_) + 1) {
    for (int l = 0; l <= loops_; ++l) copies_.get()[l] = nodes_.get()[l] = 0;
    for (int i = 0; i < g.count; ++i)
      if (g.nodes[i].op->loops_steps)
        nodes_.get()[g.nodes[i].attributes<op::loop>().number] = i;
  }
  node_copier(const node_copier&) = delete;

  /// The loop that is recorded in place of another one, by number, or 0.
  constexpr int copy_of_loop(int number) const {
    return number <= loops_ ? copies_.get()[number] : 0;
  }
  constexpr int node_of_loop(int number) const { return nodes_.get()[number]; }

  /// The value of a step of a loop that is recorded again, from its stack, as the copy's step reads
  /// it. kept(i): the replacement of values that are saved outside of such loops.
  template <class Kept>
  constexpr int result_of_step(int at, const Kept& kept) const {
    const int loop = g.nodes[at].loop;
    if (copy_of_loop(loop) == 0) return kept(at);
    const int all = steps_of(g, node_of_loop(loop), at);
    node n = g.nodes[at];
    n.op = &builtin<op::step_slice>;
    n.set<op::step_slice>({copy_of_loop(loop), 0});
    n.arity = 1;
    n.in[0] = result_of_step(all, kept);
    return g.add(n);
  }

  /// Begins the loops whose bodies begin with node i and end before another.
  constexpr void begin_loops(int i, int end) {
    for (int l = 1; l <= loops_; ++l) {
      const loop_range of = g.loops[l - 1];
      if (of.begin != i || nodes_.get()[l] <= i || nodes_.get()[l] >= end) continue;
      copies_.get()[l] = open_loop(g, of.trip, *g.rules_of_loops, of.branch);
      g.loops[g.loop - 1].every = of.every;
    }
  }
  /// Node i, where input(was) is the replacement of an input. Checks are not repeated.
  template <class Input>
  constexpr int copy(int i, const Input& input) {
    node n = g.nodes[i];
    const bool loop = n.op->loops_steps;
    if (n.op->check && !loop) return input(n.in[0]);
    g.lists.own(n);
    for (int k = 0; k < n.arity; ++k) {
      const int in = input(g.inputs(n)[k]);
      g.inputs(n)[k] = in;  // looked up again: there may be more lists
    }
    if (loop) close_loop(g);
    name_loop(n);
    if (is<op::detach>(n)) n.set<op::detach>({});
    if (is<op::detach>(n) || !g.recording) n.needs_grad = n.input_grad = false;
    n.after[0] = n.after[1] = -1;
    return g.add(n);
  }

 private:
  constexpr void name_loop(node& n) const {
    const int loop = n.op->loops_steps ? made_by_loop(n) : given_by_loop(n) + made_by_loop(n);
    const int copy = loop == 0 ? 0 : copy_of_loop(loop);
    if (copy == 0) return;
    if (n.op->loops_steps) {
      auto a = n.attributes<op::loop>();
      a.number = copy;
      n.set<op::loop>(a);
      n.op = g.rules_of_loops->of[false][false][false];
    } else {
      auto a = n.attributes<op::steps>();  // nodes other than `steps` have the same without a size
      a.loop = copy;
      n.set<op::steps>(a);
    }
  }

  graph& g;
  int loops_;
  owned_array<int> copies_, nodes_;
};

/// The values that rules read of checkpointed segments in a graph with loops; like graph_replay,
/// whose memory it uses. If backward is inside a loop, a segment of the body is recorded again
/// within the reversed loop's steps.
template <class Context>
class loop_replay {
 public:
  /// in.kept(i): the replacement of a saved value.
  constexpr loop_replay(graph& of, graph_replay& memory, const Context& in)
      : g(of), r(memory), in_(in) {}

  /// The node that stands for node i: itself, or its copy.
  constexpr int value(int i, int gradient) {
    const int s = i < r.nodes_ ? g.nodes[i].segment : 0;
    if (s == 0 || g.within(g.segment, s)) return i;
    if (g.recording && (in_.in_loop() || has_loop(s))) return i;
    if (!r.done_[s]) record(s, gradient);
    const int made = r.copy_[r.index_of(i, s)];
    return made < 0 ? i : made;
  }

 private:
  constexpr bool has_loop(int s) const {
    const segment_range range = g.segments[s - 1];
    bool any = false;
    for (int i = range.begin; i < range.end; ++i) any |= g.nodes[i].loop != 0;
    return any;
  }
  /// Values that depend on sizes alone are always available.
  constexpr bool fixed(int i) const {
    const node& n = g.nodes[i];
    return n.op->kind == op_kind::leaf ||
           (r.fixed_[i] && n.loop == 0 && made_by_loop(n) == 0 && given_by_loop(n) == 0);
  }

  constexpr void record(int s, int gradient) {
    r.done_[s] = true;
    const segment_range range = g.segments[s - 1];
    const int inside = std::exchange(g.loop, in_.loop_for(range.begin, range.end));
    node_copier copier(g);
    const auto kept = [&](int was) { return in_.kept(value(was, gradient)); };
    const auto input = [&](int was) {
      if (g.within(g.nodes[was].segment, s)) return r.copy_[r.index_of(was, s)];
      return copier.result_of_step(was, kept);
    };
    for (int i = range.begin; i < range.end; ++i) {
      copier.begin_loops(i, range.end);
      if (!g.within(g.nodes[i].segment, s)) continue;
      int& copy = r.copy_[r.index_of(i, s)];
      if (result_of_steps(g.nodes[i])) {
        copy = copier.result_of_step(i, [&](int was) { return in_.kept(was); });
        continue;
      }
      const int before = g.count, made = fixed(i) ? i : copier.copy(i, input);
      copy = made;
      if (made >= before) wait(i, made, gradient);
    }
    g.loop = inside;
  }
  constexpr void wait(int of, int made, int gradient) {
    node& n = g.nodes[made];
    if (in_.in_loop()) refuse_again(g, n);
    if (n.op->impure) n.set<op::drawing>({.again = r.random_[of]});
    int k = 0;
    for (int before : {gradient, r.root})
      if (in_loop(g, n.loop, g.nodes[before].loop)) n.after[k++] = before;
  }

  graph& g;
  graph_replay& r;
  const Context& in_;
};

}  // namespace xla::detail
