// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/owned_array.hpp"
#include "xla/graph/loops.hpp"

namespace xla::detail {

/// A loop; check: its steps may check something, so that it runs whether or not anybody wants its
/// results.
constexpr loop_info info_of_loop(const loop_maker& maker, bool check) {
  loop_info i{builtin<op::loop>};
  i.loops_steps = true;
  i.maker = &maker;
  i.check = check;
  return i;
}

/// What all steps of a loop, by its node, have made of a value; where it is kept already, that.
constexpr int steps_of(graph& g, int loop, int value) {
  for (int i = loop + 1; i < g.count; ++i)
    if (is<op::steps>(g.nodes[i]) && g.nodes[i].in[0] == loop && g.nodes[i].in[1] == value)
      return i;
  const auto about = g.nodes[loop].attributes<op::loop>();
  const node& of = g.nodes[value];
  shape all;
  all.push(about.trip);
  for (int i = 0; i < of.rank; ++i) all.push(of.dims[i]);
  node n;
  n.op = &builtin<op::steps>;
  n.type = of.type;
  n.set_shape(all);
  n.set<op::steps>({about.number, 0});
  n.needs_grad = g.recording && of.needs_grad;
  n.input_grad = g.recording && of.input_grad;
  n.arity = 2;
  n.in[0] = loop;
  n.in[1] = value;
  return g.add(n);
}

/// What says how often the steps run, where the trip does not; of a branch the node that decides.
struct loop_control {
  bool when = false, unless = false, tested = false;
  int decides = -1;
};
/// Of a loop that is there.
constexpr loop_control control_of(const graph& g, const node& loop) {
  const auto about = loop.attributes<op::loop>();
  const bool decided = loop.arity > 2 * about.carries;
  return {about.when, about.unless, about.tested,
          decided ? g.inputs(loop)[2 * about.carries] : -1};
}

/// Recording of one loop in a graph: what its steps are given, then its body, then what they hand
/// on, and results. What is a template stands first: clang has to have seen it.
class loop_recorder {
  template <class Op>
  constexpr node of_loop(dtype type, const shape& dims, int number) const {
    node n;
    n.op = &builtin<Op>;
    n.type = type;
    n.set_shape(dims);
    n.set<Op>({number_, number});
    return n;
  }
  constexpr void flow(node& n, int from) const {
    n.needs_grad = g.recording && g.nodes[from].needs_grad;
    n.input_grad = g.recording && g.nodes[from].input_grad;
  }
  constexpr int add(node& n, int input) {
    n.arity = 1;
    n.in[0] = input;
    return g.add(n);
  }

 public:
  constexpr loop_recorder(graph& in, const loop_rules& rules, extent trip, bool reverse,
                          loop_control control = {})
      : g(in), first_(in.count), trip_(trip), reverse_(reverse), control_(control),
        number_(open_loop(in, trip, rules, control.decides >= 0)) {}
  loop_recorder(const loop_recorder&) = delete;

  constexpr int number() const { return number_; }

  /// The next carry, which begins as init; needs_grad, input_grad: as what is handed on may.
  constexpr int carry(int init, bool needs_grad, bool input_grad) {
    const node& from = g.nodes[init];
    node n = of_loop<op::carry>(from.type, from.dims_shape(), carries_++);
    n.needs_grad = from.needs_grad || needs_grad;
    n.input_grad = from.input_grad || input_grad;
    return add(n, init);
  }
  /// The step's part of all: one index of the first axis.
  constexpr int slice(int all) {
    shape rest;
    for (int i = 1; i < g.nodes[all].rank; ++i) rest.push(g.nodes[all].dims[i]);
    node n = of_loop<op::step_slice>(g.nodes[all].type, rest, 0);
    flow(n, all);
    return add(n, all);
  }
  constexpr int step() { return g.add(of_loop<op::step_number>(dtype::int64, {}, 0)); }

  /// The body is recorded: what each step hands on for each carry, and the carries' first values.
  constexpr void close(const int* next, const int* init) {
    close_loop(g);
    bool any = false;
    for (int i = first_; i < g.count; ++i)
      any |= g.nodes[i].op->check && in_loop(g, g.nodes[i].loop, number_);
    node n;
    n.op = any ? g.rules_of_loops->checks : g.rules_of_loops->plain;
    n.type = dtype::boolean;
    n.set<op::loop>({number_, carries_, reverse_, control_.when, control_.unless, control_.tested,
                     trip_});
    const bool decided = control_.decides >= 0;
    g.lists.open(n, 2 * carries_ + decided);
    int* const in = g.inputs(n);
    if (decided) in[2 * carries_] = control_.decides;
    for (int k = 0; k < carries_; ++k) {
      in[k] = next[k];
      in[carries_ + k] = init[k];
    }
    loop_ = g.add(n);
  }
  /// What the last step has handed on for a carry.
  constexpr int last(int carry, int next) {
    node n = of_loop<op::last_step>(g.nodes[next].type, g.nodes[next].dims_shape(), carry);
    flow(n, next);
    return add(n, loop_);
  }
  /// What all steps have made of a value.
  constexpr int steps(int value) { return steps_of(g, loop_, value); }

 private:
  graph& g;
  int first_;
  extent trip_;
  bool reverse_;
  loop_control control_;
  int number_, carries_ = 0, loop_ = -1;
};

}  // namespace xla::detail
