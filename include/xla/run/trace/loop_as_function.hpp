// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients from outside through a loop of a compiled function: the loop's nodes become a recorded
// function. run/call/taped_call.hpp reaches it by a pointer.

#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/run/plan/sized.hpp"
#include "xla/run/trace/function_gradient.hpp"
#include "xla/run/trace/loop_rules.hpp"
#include "xla/run/trace/traced_calls.hpp"

namespace xla::detail {

/// A loop of a compiled function that a backward() outside reaches: its nodes become a function,
/// through which gradients flow.
template <class In>
class basic_loop_as_function {
 public:
  explicit basic_loop_as_function(const loop_of_call& of)
      : of_(of),
        first_(of.nodes[of.loop].segment),
        end_(of.loop + 1),
        f_(new basic_function<In>),
        at_(of.count, no_node) {}

  void run() {
    for (int i = first_; i < end_; ++i)
      for (int k = 0; k < at(i).arity; ++k)
        if (const int in = inputs(i)[k]; in < first_ && at_[in] == no_node) take(in);
    for (int i = first_; i < end_; ++i) {
      for (int k = end_ - 1; k >= i; --k)  // the outermost first
        if (is<op::loop>(at(k)) && at(k).segment == i) open(k);
      add(i);
    }
    list<int> made;
    for (int i = end_; i < of_.count; ++i) {
      if (!is<op::steps>(at(i)) && !is<op::last_step>(at(i))) {
        for (int k = 0; k < at(i).arity; ++k)  // the loop-invariant nodes
          if (in_body(inputs(i)[k])) made.push_back(inputs(i)[k]);
      } else if (in_body(at(i).in[0])) {
        made.push_back(i);
        add(i);
      }
    }
    for (int i : made) f_->results.push_back(at_[i]);
    f_->sign();
    list<ref<impl>> results = call_function<In>(ref<call_record>(f_.take()), in_);
    for (int k = 0; k < made.size(); ++k) of_.values[made[k]] = results[k];
    calls_made<In>();
  }

 private:
  const node& at(int i) const { return of_.nodes[i]; }
  const int* inputs(int i) const {
    return at(i).arity > few_inputs ? of_.lists + at(i).in[0] : at(i).in;
  }
  bool in_body(int i) const { return i >= first_ && i < end_; }

  void take(int in) {
    ref<impl>& t = of_.values[in];
    at_[in] = f_->input(*t, t->needs_grad);
    in_.push_back(t);
  }
  // Loops are renumbered.
  void open(int loop) {
    const auto about = at(loop).template attributes<op::loop>();
    while (numbers_.size() <= about.number) numbers_.push_back(0);
    graph& g = f_->g;
    const int number = open_loop(g, value_at(of_.symbols, about.trip), loops_of_graphs<In>,
                                 about.when || about.unless);
    g.loops[number - 1].every = value_at(of_.symbols, at(loop).dims[0]);
    numbers_[about.number] = number;
  }
  void add(int i) {
    graph& g = f_->g;
    node n = at(i);
    const int given = given_by_loop(n), made = made_by_loop(n);
    n.set_shape(value_at(of_.symbols, n.dims_shape()));
    n.attr.size = value_at(of_.symbols, n.attr.size);
    if (is<op::loop>(n)) {
      auto about = n.template attributes<op::loop>();
      about.number = numbers_[made];
      n.template set<op::loop>(about);
    } else if (given != 0 || made != 0) {
      auto about = n.template attributes<op::of_loop>();
      about.loop = numbers_[given != 0 ? given : made];
      const extent size = n.attr.size;
      n.template set<op::of_loop>(about);
      n.attr.size = size;
    }
    if (!of_.winograd) n.attr = without_winograd(*n.op, n.attr);
    if (is<op::detach>(n)) n.template set<op::detach>({});  // slots are the compiled function's
    n.needs_grad |= n.input_grad;
    n.input_grad = false;
    n.segment = n.loop = 0;
    g.lists.open(n, n.arity);
    for (int k = 0; k < n.arity; ++k) g.inputs(n)[k] = at_[inputs(i)[k]];
    const int level = at(i).loop < numbers_.size() ? numbers_[at(i).loop] : 0;
    const int recorded = std::exchange(g.loop, level);
    at_[i] = g.add(n);
    g.loop = recorded;
    if (is<op::loop>(n)) close_loop(g);
  }

  const loop_of_call& of_;
  const int first_, end_;  // its nodes
  ref<basic_function<In>> f_;
  list<int> at_;       // per node: its number in the function
  list<int> numbers_;  // per loop: its number in the function
  list<ref<impl>> in_;
};

template <class In>
void replay_loop(const loop_of_call& of) {
  basic_loop_as_function<In>(of).run();
}
XLA_INSTANCE(void replay_loop<void>(const loop_of_call&));

}  // namespace xla::detail
