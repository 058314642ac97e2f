// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records one loop in a graph: carries, body, results. scan(), cond(), loops recorded at run time
// and the gradients of loops use it; graph/loops.hpp defines the ops.

#include "xla/base/owned_array.hpp"
#include "xla/graph/loops.hpp"

namespace xla::detail {

/// A loop. check: its steps may check something, or exchange whether or not the result is used; its
/// writes then do not go to the old values' memory.
constexpr loop_info info_of_loop(const loop_maker& maker, const plan_hooks& in_plans, bool draws,
                                 bool check, bool exchanges) {
  loop_info i{builtin<op::loop>};
  i.loops_steps = true;
  i.maker = &maker;
  i.plan = &in_plans;
  i.draws = draws;
  i.check = check;
  i.exchanges = exchanges;
  return i;
}

/// Nodes recorded during its lifetime enclose a loop, even if that is a branch.
class around_loop {
 public:
  constexpr around_loop(graph& of, int loop) : g_(of), recorded_(of.loop) {
    g_.loop = g_.loops[loop - 1].parent;
  }
  around_loop(const around_loop&) = delete;
  constexpr ~around_loop() { g_.loop = recorded_; }

 private:
  graph& g_;
  int recorded_;
};

/// The number of blocks of this many steps; the last may have fewer.
constexpr extent blocks_of(graph& g, extent trip, extent every) {
  return g.sizes.divide(g.sizes.plus(trip, g.sizes.minus(every, 1)), every);
}

/// The stack of a value over all steps of a loop, given by its node, or over the last step of every
/// group of this many; an existing stack if there is one.
constexpr int steps_of(graph& g, int loop, int value, extent every = 0) {
  const auto about = g.nodes[loop].attributes<op::loop>();
  const auto kept = pack(op::steps::attributes{about.number, 0, every});
  for (int i = loop + 1; i < g.count; ++i)
    if (is<op::steps>(g.nodes[i]) && g.nodes[i].in[0] == loop && g.nodes[i].in[1] == value &&
        g.nodes[i].attr == kept)
      return i;
  const node& of = g.nodes[value];
  shape all;
  all.push(every == 0 ? extent{about.trip} : blocks_of(g, about.trip, every));
  for (int i = 0; i < of.rank; ++i) all.push(of.dims[i]);
  node n;
  n.op = &builtin<op::steps>;
  n.type = of.type;
  n.set_shape(all);
  n.attr = kept;
  n.needs_grad = g.recording && of.needs_grad;
  n.input_grad = g.recording && of.input_grad;
  n.arity = 2;
  n.in[0] = loop;
  n.in[1] = value;
  return g.add(n);
}

/// Inputs of the loop node: the number of steps, if `trip` does not fix it; the predicate of a
/// branch; and the call to which it belongs.
struct loop_control {
  bool when = false, unless = false, tested = false, bounded = false, counted = false;
  int decides = -1;
  loop_function function{};
  std::source_location at{};
  constexpr bool is_branch() const { return when || unless; }
};
/// For an existing loop.
constexpr loop_control control_of(const graph& g, const node& loop) {
  const auto about = loop.attributes<op::loop>();
  const bool decided = loop.arity > 2 * about.carries;
  return {about.when,     about.unless,  about.tested,
          about.bounded,  about.counted, decided ? g.inputs(loop)[2 * about.carries] : -1,
          about.function, loop.at};
}

/// For the same call as another loop, with the number of steps in a node.
constexpr loop_control counted_as(const node& loop, int count) {
  return {.counted = true,
          .decides = count,
          .function = loop.attributes<op::loop>().function,
          .at = loop.at};
}

/// Records one loop in a graph: the arguments of its steps, then its body, then the values that
/// they pass on, and results. Templates come first, because clang must have seen them.
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
  constexpr int add(node& n, int input, int arity = 1) const {
    n.arity = arity;
    n.in[0] = input;
    return g.add(n);
  }
  constexpr shape part_of(int all) const {
    shape rest;
    for (int i = 1; i < g.nodes[all].rank; ++i) rest.push(g.nodes[all].dims[i]);
    return rest;
  }

 public:
  /// trip: the number of steps; -1: there is no loop.
  constexpr loop_recorder(graph& in, const loop_rules& rules, extent trip, bool reverse,
                          loop_control control = {})
      : g(in),
        first_(in.count),
        trip_(trip),
        reverse_(reverse),
        control_(control),
        number_(trip == -1 ? 0 : open_loop(in, trip, rules, control.is_branch())) {}
  loop_recorder(const loop_recorder&) = delete;

  constexpr bool open() const { return number_ != 0; }

  constexpr int number() const { return number_; }
  constexpr int made() const { return loop_; }

  /// The next carry, with the initial value init; needs_grad, input_grad: as the passed values may.
  constexpr int carry(int init, bool needs_grad, bool input_grad) {
    const node& from = g.nodes[init];
    node n = of_loop<op::carry>(from.type, from.dims_shape(), carries_++);
    n.needs_grad = from.needs_grad || needs_grad;
    n.input_grad = from.input_grad || input_grad;
    return add(n, init);
  }
  /// A carry through which no gradients pass: of a slot, as op::of_carry says.
  constexpr int state(int init, int of) {
    node n = of_loop<op::carry>(g.nodes[init].type, g.nodes[init].dims_shape(), carries_);
    n.set<op::carry>({number_, carries_++, of, 0});
    return add(n, init);
  }
  /// The step's slice of a stacked tensor along the first axis; indices start at `first`, if given.
  constexpr int slice(int all, int first = -1) {
    node n = of_loop<op::step_slice>(g.nodes[all].type, part_of(all), 0);
    flow(n, all);
    n.in[1] = first;
    return add(n, all, first < 0 ? 1 : 2);
  }
  /// The carry that the step of another loop received: the value that the previous step passed on,
  /// from the stack of all.
  constexpr int before(int all, int init, bool reversed) {
    node n = of_loop<op::step_before>(g.nodes[all].type, part_of(all), reversed);
    n.in[1] = init;
    return add(n, all, 2);
  }
  constexpr int step() { return g.add(of_loop<op::step_number>(dtype::int64, {}, 0)); }

  /// The body is recorded: sets the values that each step passes on for each carry, and the initial
  /// ones.
  constexpr void close(const int* next, const int* init) {
    close_loop(g);
    bool draws = false, check = false, exchanges = false;
    for (int i = first_; i < g.count; ++i) {
      const node& n = g.nodes[i];
      if (!in_loop(g, n.loop, number_)) continue;
      draws |= takes_numbers(n);
      check |= n.op->check || (n.op->exchanges && !n.gradient);
      exchanges |= n.op->exchanges;
    }
    node n;
    n.op = g.rules_of_loops->of[draws][check][exchanges];
    n.type = dtype::boolean;
    n.set<op::loop>({number_, carries_, reverse_, control_.when, control_.unless, control_.tested,
                     control_.bounded, control_.counted, g.loops[number_ - 1].checkpoints,
                     control_.function, trip_});
    n.at = control_.at;
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
  /// The last value of a carry; if there are no steps, the initial one.
  constexpr int last(int carry, int next) {
    node n = of_loop<op::last_step>(g.nodes[next].type, g.nodes[next].dims_shape(), carry);
    flow(n, next);
    const node& init = g.nodes[g.inputs(g.nodes[loop_])[carries_ + carry]];
    n.needs_grad |= g.recording && init.needs_grad;
    n.input_grad |= g.recording && init.input_grad;
    return add(n, loop_);
  }
  constexpr int last_state(int carry, int next, int of) const {
    node n = of_loop<op::last_step>(g.nodes[next].type, g.nodes[next].dims_shape(), carry);
    n.set<op::last_step>({number_, carry, of, 0});
    return add(n, loop_);
  }
  /// The stack of a value over all steps.
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
