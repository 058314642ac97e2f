// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gradient of a recorded function, as another recorded function. backward() calls it when it
// reaches a call.

#include <stdexcept>
#include <string>
#include <utility>

#include "xla/run/trace/graph_recorder.hpp"
#include "xla/transform/backward.hpp"

namespace xla::detail {

/// The backward pass of a recorded function is a recorded function, too. The function itself
/// returns the values that the rules read of the forward pass, as further results: in the same run,
/// if it has not run yet.
template <class In>
class basic_function_gradient {
 public:
  using function = basic_function<In>;

  /// The order in which gradients come to a function's inputs.
  static list<int> order_of_inputs(function& f) {
    list<int> order, all;
    if (f.g.count == 0) return order;
    graph_backward pass(f.g, f.g.count - 1, false, &add_gradients<In>);
    for (int at = order_from(pass, f.results); at >= 0; at = pass.next[at])
      if (at < f.inputs) all.push_back(at);
    for (int i = all.size() - 1; i >= 0; --i) order.push_back(all[i]);
    return order;
  }

  explicit basic_function_gradient(gradient_scope& of)
      : s_(of), call_(*of.out.value()), held_(call_.made_by), f_(function::of(call_)) {}

  void run() {
    list<int> sums(call_.arity, no_node);
    ref<function> back(new function), more(new function);
    list<ref<impl>> given;
    {
      basic_graph_recorder<In> w;
      find_gradients(w, sums);
      divide(w, sums, *back, given);
      extend(w.g, *more);
    }
    back->sign();
    list<ref<impl>> kept;
    if (!read_.empty()) kept = forward(std::move(more));
    int next = 0;
    for (ref<impl>& t : given)
      if (!t) t = kept[next++];
    list<ref<impl>> made = call_function<In>(ref<call_record>(back.take()), given);
    int k = 0;
    for (int i = 0; i < call_.arity; ++i) {
      if (sums[i] < 0) continue;
      handle sum;
      sum.adopt(made[k++].take());
      const bool adds = !goes_on(i) && s_.result[i].defined();
      s_.result[i] = adds ? add_gradients<In>(call_.in[i]->type, s_.result[i], sum) : sum;
    }
    calls_made<In>();
  }

 private:
  /// The values read from the function: computed with its results if these are still pending, else
  /// separately.
  list<ref<impl>> forward(ref<function> more) const {
    if (pending_list* const own = this_thread.recording; own && records_ops()) {
      const std::lock_guard hold(own->planning);
      if (call_.pending.load(std::memory_order_acquire) == own) {
        list<int> results = f_.results;
        for (int at : more->results) results.push_back(at);
        more->results = std::move(results);
        more->sign();
        list<ref<impl>> made = results_of_call<In>(call_, *more, f_.results.size());
        call_.made_by = ref<call_record>(more.take());
        for (const ref<impl>& t : made) own->add(t.get());
        return made;
      }
    }
    list<ref<impl>> in;
    for (int k = 0; k < call_.arity; ++k) in.push_back(ref<impl>::share(s_.in[k].value()));
    more->sign();
    return call_function<In>(ref<call_record>(more.take()), in, call_.attr);
  }

  static int order_from(graph_backward& pass, const list<int>& from) {
    list<int> stack(4 * (pass.root + 1) + pass.g.lists.count + from.size() + 1);
    int top = 0, outside = 0;
    for (int i = from.size() - 1; i >= 0; --i)
      if (pass.follows(from[i])) stack[top++] = from[i];
    return pass.find_order(0, stack.data(), top, nullptr, outside);
  }

  void find_gradients(basic_graph_recorder<In>& w, list<int>& sums) {
    graph& g = w.g;
    for (int i = 0; i < call_.arity; ++i) map_.push_back(w.input(s_.in[i]));
    list<int> grads, from, arrived;
    for (int k = 0; k < f_.results.size(); ++k) {
      const bool there = k < s_.grad_count && s_.grads[k].defined();
      grads.push_back(there ? w.node_of(s_.grads[k]) : no_node);
    }
    for (int i = 0; i < call_.arity; ++i) {
      const bool there = s_.needs[i] && s_.result[i].defined() && goes_on(i);
      arrived.push_back(there ? w.node_of(s_.result[i]) : no_node);
    }
    add_graph<In>(f_.g, f_.inputs, g, map_);
    end_ = g.count;
    g.recording = grad_enabled();
    g.in_backward = true;
    graph_backward pass(g, end_ - 1, false, &add_gradients<In>);
    for (int k = 0; k < grads.size(); ++k)
      if (grads[k] >= 0) from.push_back(map_[f_.results[k]]);
    const int first = order_from(pass, from);
    for (int i = 0; i < call_.arity; ++i)
      if (arrived[i] >= 0) pass.gradient[map_[i]] = arrived[i];
    for (int k = 0; k < grads.size(); ++k)
      if (grads[k] >= 0) pass.accumulate(map_[f_.results[k]], grads[k]);
    pass.run_list(first);
    if (g.sizes.refused.failed())
      throw dependent<In, std::logic_error>(std::string(g.sizes.refused.why.view()));
    for (int i = 0; i < call_.arity; ++i)
      if (s_.needs[i]) sums[i] = pass.gradient[map_[i]];
  }

  /// Whether the sum of an input's gradient must begin with the gradient that has arrived there: a
  /// body reads it or passes it on in each step, a loop in it begins with it, or several sums are
  /// added. For the first carry of an outermost loop, or for a tensor that is sliced, all is added
  /// at once.
  bool goes_on(int input) const {
    const graph& g = f_.g;
    int at_once = 0;
    for (int i = f_.inputs; i < g.count; ++i) {
      const node& n = g.nodes[i];
      const int of = is<op::loop>(n) ? made_by_loop(n) : given_by_loop(n);
      const bool outer = of != 0 && g.loops[of - 1].parent == 0;
      if (outer && is<op::carry>(n)) continue;  // the loop's own input carries it
      const int yielded = is<op::loop>(n) ? n.attributes<op::loop>().carries : 0;
      for (int k = 0; k < n.arity; ++k)
        if (g.inputs(n)[k] == input && (!outer || k < yielded || ++at_once > 1)) return true;
    }
    return false;
  }

  /// The stack over all steps of a loop of the function.
  bool kept(const graph& g, int at) const {
    return at >= end_ && is<op::steps>(g.nodes[at]) && g.nodes[at].in[0] < end_;
  }
  bool is_input(const graph& g, int at) const { return is<op::input>(g.nodes[at]); }

  /// The inputs of the sums. Rules also read values that nothing depends on in the end, such as the
  /// input of an op whose gradient follows from its result. A loop keeps its carries: gradients of
  /// gradients pass through a carry that no step reads, too.
  list<char> find_needed(const graph& g, const list<int>& sums) const {
    list<char> needed(g.count);
    for (int at : sums)
      if (at >= 0) needed[at] = 1;
    for (int i = g.count - 1; i >= end_; --i) {
      const node& n = g.nodes[i];
      if (kept(g, i)) continue;
      const bool of_loop = is<op::loop>(n) || is<op::carry>(n);
      if (of_loop || n.op->check || runs_anyway(n)) needed[i] = 1;
      for (int k = 0; k < n.arity && needed[i]; ++k) needed[g.inputs(n)[k]] = 1;
    }
    return needed;
  }

  // After the function's nodes come those of the backward pass. Its inputs are those of both, and
  // the values that it reads from the function.
  void divide(basic_graph_recorder<In>& w, const list<int>& sums, function& back,
              list<ref<impl>>& given) {
    const graph& g = w.g;
    const list<char> needed = find_needed(g, sums);
    list<int> map(g.count, no_node);
    for (int i = 0; i < w.leaves.size(); ++i) {
      const int at = w.leaves[i];
      if (!needed[at]) continue;
      map[at] = back.input(g.nodes[at], g.nodes[at].needs_grad);
      given.push_back(w.outside[i]);
    }
    for (int i = 0; i < g.count; ++i) {
      const bool mine = i >= end_ && !kept(g, i);
      if (!needed[i] || mine || map[i] >= 0 || is<op::constant>(g.nodes[i])) continue;
      map[i] = back.input(g.nodes[i], g.nodes[i].needs_grad);
      given.emplace_back();
      read_.push_back(i);
    }
    for (int i = 0; i < end_; ++i)
      if (needed[i] && is<op::constant>(g.nodes[i])) map[i] = back.g.add(g.nodes[i]);
    for (int i = 0; i < g.count; ++i)  // values that only the function itself reads, or none
      if (map[i] < 0 && (i < end_ || kept(g, i) || !needed[i])) map[i] = 0;
    add_graph<In>(g, end_, back.g, map);
    for (int at : sums)
      if (at >= 0) back.results.push_back(map[at]);
  }
  /// The function, with the values read from it as its results.
  void extend(const graph& g, function& more) const {
    list<int> map;
    for (int i = 0; i < f_.inputs; ++i)
      map.push_back(more.input(f_.g.nodes[i], f_.g.nodes[i].needs_grad));
    add_graph<In>(f_.g, f_.inputs, more.g, map);
    more.g.recording = grad_enabled();
    more.draws = f_.draws;
    for (int at : read_) more.results.push_back(node_in(more, g, at));
  }
  int node_in(function& more, const graph& g, int at) const {
    if (at >= end_)
      return steps_of(more.g, node_in(more, g, g.nodes[at].in[0]),
                      node_in(more, g, g.nodes[at].in[1]),
                      g.nodes[at].template attributes<op::steps>().every);
    int own = 0;
    while (map_[own] != at) ++own;
    return own;
  }

  gradient_scope& s_;
  impl& call_;
  const ref<call_record> held_;
  const function& f_;
  int end_ = 0;     // nodes before it belong to the function
  list<int> map_;   // per node of the function
  list<int> read_;  // those that the backward pass reads
};

template <class In>
void call_gradient(gradient_scope& s) {
  basic_function_gradient<In>(s).run();
}

}  // namespace xla::detail
