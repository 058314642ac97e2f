// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions recorded at run time: graphs of their own, whose first nodes are their inputs. A tensor
// of op::call refers to one; a graph made of tensors contains its body.

#include <cstdint>
#include <memory>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/graph/loops.hpp"
#include "xla/run/trace/lazy.hpp"
#include "xla/run/trace/recorded_function.hpp"

namespace xla::detail {

constexpr int no_node = -1;

/// A recorded function that is added to a graph with another number of steps than recorded.
struct other_trip {
  extent was = -1, now = -1;
  /// Whether a node stacks the values of all steps of an outermost loop, so that its first size is
  /// the number of steps.
  bool is_long(const graph& g, const node& n) const {
    return is<op::steps>(n) && loop_has(g, made_by_loop(n)) && !keeps_some(n);
  }
  static bool keeps_some(const node& n) { return n.attributes<op::steps>().every != 0; }
  bool loop_has(const graph& g, int loop) const {
    return g.loops[loop - 1].parent == 0 && g.loops[loop - 1].trip == was;
  }
};

/// Copies the nodes of a graph from `first` on into another graph, except those that `map` maps
/// already; completes `map`. Loops that begin there become loops of the other graph.
template <class In = void>
[[gnu::cold]] void add_graph(const graph& from, int first, graph& to, list<int>& map,
                             other_trip trip = {}) {
  list<int> loops(from.loop_count + 1);
  loops[0] = to.loop;
  int next = 0;
  while (next < from.loop_count && from.loops[next].begin < first) ++next;
  while (map.size() < from.count) map.push_back(no_node);
  for (int i = first; i < from.count; ++i) {
    for (; next < from.loop_count && from.loops[next].begin == i; ++next) {
      const loop_range& l = from.loops[next];
      loops[next + 1] = open_loop(to, trip.loop_has(from, next + 1) ? trip.now : l.trip,
                                  *from.rules_of_loops, l.branch);
      to.loops[loops[next + 1] - 1].every = l.every;
    }
    if (map[i] != no_node) continue;
    node n = from.nodes[i];
    to.lists.own(n, from.lists);
    int* const in = to.inputs(n);
    for (int k = 0; k < n.arity; ++k) in[k] = map[from.inputs(from.nodes[i])[k]];
    n.after[0] = n.after[1] = -1;
    n.segment = n.loop = 0;
    const bool ends = is<op::loop>(n);
    if (trip.is_long(from, n)) n.dims[0] = trip.now;
    if (ends) {
      auto about = n.template attributes<op::loop>();
      if (trip.loop_has(from, about.number)) about.trip = trip.now;
      about.number = loops[about.number];
      n.template set<op::loop>(about);
    } else if (given_by_loop(n) != 0 || made_by_loop(n) != 0) {
      auto about = n.template attributes<op::of_loop>();
      about.loop = loops[about.loop];
      const extent size = n.attr.size;
      n.template set<op::of_loop>(about);
      n.attr.size = size;
    }
    const int recorded = std::exchange(to.loop, loops[from.nodes[i].loop]);
    map[i] = to.add(n);
    to.loop = recorded;
    if (ends) close_loop(to);
  }
}

template <class In>
class basic_traced_calls;

/// A function recorded from tensors.
template <class In>
class basic_function final : public recorded_function {
 public:
  basic_function() = default;
  ~basic_function() override {
    if (g.own_loops) delete[] g.loops;
  }
  owned_graph g;  ///< its first nodes are its inputs
  int inputs = 0;
  list<int> results;  ///< nodes
  list<char> sliced;  ///< per input: whether loops only read slices of it

  list<std::uint64_t> words;  ///< its identity: two functions with equal words are the same
  /// The number of steps that all its outermost loops have in common; else -1.
  std::int64_t trip = -1;

  static const basic_function& of(const impl& call) {
    return static_cast<const basic_function&>(*call.made_by.get());
  }
  /// Adds its body to a graph that has its inputs, then its results. steps: the number of steps in
  /// that graph.
  void add_to(graph& to, const int* given, extent steps, list<int>& made) const {
    list<int> map;
    for (int i = 0; i < inputs; ++i) map.push_back(given[i]);
    add_graph<In>(g, inputs, to, map, {trip, steps});
    for (int r : results) made.push_back(map[r]);
  }
  void put_numbers(const impl& call, list<rng_state>& to) const override {
    const auto [seed, offset] = unpack<op::drawing::drawn>(call.attr);
    for (std::uint64_t from : draws) to.push_back({seed, offset + from});
  }
  traced_calls* look_at(dependent<In, traced_graph>& of) const override {
    return (calls_ = std::make_unique<basic_traced_calls<In>>(of)).get();
  }
  /// A value whose first size is the number of steps.
  bool is_long(int at) const {
    if (trip < 0) return false;
    return at < inputs ? sliced[at] != 0 : other_trip{trip, trip}.is_long(g, g.nodes[at]);
  }
  int input(const op_record& like, bool needs_grad) {
    node n;
    n.op = &builtin<op::input>;
    n.type = like.type;
    n.set_shape(like.dims_shape());
    n.template set<op::input>({});
    n.needs_grad = needs_grad;
    ++inputs;
    return g.add(n);
  }
  /// To be called when it is complete: computes its identity.
  [[gnu::cold]] void sign() {
    find_trip();
    const auto put = [this](auto word) { words.push_back(static_cast<std::uint64_t>(word)); };
    put(g.count);
    put(inputs);
    for (int i = 0; i < g.count; ++i) {
      const node& n = g.nodes[i];
      put(reinterpret_cast<std::uintptr_t>(n.op));
      put(std::uint64_t{static_cast<unsigned>(n.arity)} << 32 |
          static_cast<std::uint64_t>(n.type) << 8 | static_cast<std::uint64_t>(n.rank));
      for (int k = 0; k < n.rank; ++k) put(k == 0 && is_long(i) ? extent{-1} : n.dims[k]);
      for (int k = 0; k < n.arity; ++k) put(g.inputs(n)[k]);
      put(n.attr.low);
      put(n.attr.high);
      put(is<op::loop>(n) && has_trip(made_by_loop(n)) ? extent{-1} : n.attr.size);
      if (!n.op->check) continue;
      put(reinterpret_cast<std::uintptr_t>(n.at.file_name()));
      put(n.at.line());
    }
    for (int i = 0; i < g.loop_count; ++i) {
      put(g.loops[i].begin);
      put(g.loops[i].every);
      put(has_trip(i + 1) ? extent{-1} : g.loops[i].trip);
    }
    for (int r : results) put(r);
  }

 private:
  mutable dependent<In, std::unique_ptr<traced_calls>> calls_;

  bool has_trip(int loop) const {
    return trip >= 0 && loop != 0 && other_trip{trip, trip}.loop_has(g, loop);
  }
  // Finds the number of steps that all outermost loops share, if no other value has that size.
  void find_trip() {
    sliced.assign(inputs, false);
    for (int i = 0; i < g.loop_count; ++i)
      if (g.loops[i].parent == 0) trip = g.loops[i].trip;
    for (int i = 0; i < g.loop_count; ++i)
      if (g.loops[i].parent == 0 && g.loops[i].trip != trip) trip = -1;
    for (int i = 0; i < g.count; ++i)
      if (const node& n = g.nodes[i]; is<op::loop>(n)) {
        const auto about = n.template attributes<op::loop>();
        if (about.when || about.unless || about.tested || about.counted) trip = -1;
      } else if (is<op::steps>(n) && g.loops[made_by_loop(n) - 1].parent == 0) {
        if (other_trip::keeps_some(n)) trip = -1;
      }
    const auto slices = [this](const node& n) {
      return (is<op::step_slice>(n) || is<op::step_before>(n)) && has_trip(given_by_loop(n));
    };
    for (int i = 0; i < g.count; ++i)
      if (const node& n = g.nodes[i]; slices(n) && n.in[0] < inputs) sliced[n.in[0]] = true;
    for (int i = 0; i < g.count && trip >= 0; ++i)
      for (int k = 0; k < g.nodes[i].arity && trip >= 0; ++k)
        if (is_long(g.inputs(g.nodes[i])[k]) && (k > 0 || !slices(g.nodes[i]))) trip = -1;
  }
};

template <class In>
void call_gradient(gradient_scope& s);
template <class In>
inline constexpr op_info call_info = [] {
  op_info i = builtin<op::call>;
  i.differentiable = true;
  i.gradient = &call_gradient<In>;
  return i;
}();

/// The results of a call, from number `first` on.
template <class In>
list<ref<impl>> results_of_call(impl& call, const basic_function<In>& f, int first) {
  list<ref<impl>> made;
  for (int k = first; k < f.results.size(); ++k) {
    const node& from = f.g.nodes[f.results[k]];
    node n;
    n.op = &builtin<op::output>;
    n.type = from.type;
    n.set_shape(from.dims_shape());
    n.arity = 1;
    n.template set<op::output>({k});
    impl* in = &call;
    made.push_back(make_impl<In>(n, &in));
    made.back()->needs_grad &= from.needs_grad;
  }
  return made;
}
/// Calls a function. Its results are pending tensors, which become pending together, as another
/// thread may run them. numbers: the position and count of its random numbers, new ones or those of
/// an earlier call.
template <class In>
list<ref<impl>> call_function(ref<call_record> f, const list<ref<impl>>& inputs,
                              const packed_attributes& numbers = {}, bool draws_again = false) {
  node n;
  n.op = &call_info<In>;
  n.attr = numbers;
  n.arity = inputs.size();
  list<impl*> in;
  for (const ref<impl>& t : inputs) {
    make_recordable<In>(*t);
    in.push_back(t.get());
  }
  const ref<impl> call = make_impl<In>(n, in.data());
  call->made_by = std::move(f);
  list<ref<impl>> made = results_of_call<In>(*call, basic_function<In>::of(*call), 0);
  dependent<In, recording>& to = own_recording<In>();
  {
    const std::lock_guard hold(to.planning);
    to.add(call.get());
    for (const ref<impl>& t : made) to.add(t.get());
  }
  if (draws_again) {
    rng_state from;
    const std::uint64_t counters = counters_of(*call, from);
    to.drew(*call, from.seed, from.offset, counters);
  }
  return made;
}
/// In eager mode, runs the calls that were just recorded.
template <class In>
void calls_made() {
  if (!records_ops()) dependent<In, tracer>::flush(own_recording<In>(), "eager mode", true);
}

}  // namespace xla::detail
