// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "xla/base/later.hpp"
#include "xla/base/list.hpp"
#include "xla/graph/loops.hpp"
#include "xla/run/trace/lazy.hpp"
#include "xla/run/trace/recorded_function.hpp"

// Functions that have been recorded at run time: graphs of their own, whose first nodes are their
// inputs. A tensor of op::call has one; a graph that is made of tensors takes in its body.

namespace xla::detail {

constexpr int no_node = -1;

/// A number of steps that is another one in the graph that a function is added to.
struct other_trip {
  extent was = -1, now = -1;
  /// Whether a value is what all steps of an outermost loop of so many have made.
  bool is_long(const graph& g, const node& n) const {
    return is<op::steps>(n) && loop_has(g, made_by_loop(n)) && !keeps_some(n);
  }
  static bool keeps_some(const node& n) { return n.attributes<op::steps>().every != 0; }
  bool loop_has(const graph& g, int loop) const {
    return g.loops[loop - 1].parent == 0 && g.loops[loop - 1].trip == was;
  }
};

/// Adds nodes of a graph, from `first` on, to another one, where `map` has not a node for them
/// already; leaves it the nodes of all. Loops that begin there become loops of the other graph.
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

/// A function of tensors.
template <class In>
class basic_function final : public recorded_function {
 public:
  basic_function() = default;
  ~basic_function() override {
    if (g.own_loops) delete[] g.loops;
  }
  owned_graph g;      ///< its first nodes are its inputs
  int inputs = 0;
  list<int> results;  ///< nodes
  list<char> sliced;  ///< per input: loops take slices of it alone

  list<std::uint64_t> words;  ///< what tells it from others
  std::int64_t trip = -1;     ///< how many steps its loops have; -1: not one number for all

  static const basic_function& of(const impl& call) {
    return static_cast<const basic_function&>(*call.made_by.get());
  }
  /// Adds its body to a graph that has its inputs; then its results. steps: what the number of its
  /// steps is there.
  void add_to(graph& to, const int* given, extent steps, list<int>& made) const {
    list<int> map;
    for (int i = 0; i < inputs; ++i) map.push_back(given[i]);
    add_graph<In>(g, inputs, to, map, {trip, steps});
    for (int r : results) made.push_back(map[r]);
  }
  traced_calls* look_at(later<In, traced_graph>& of) const override {
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
  /// It is complete.
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
  mutable later<In, std::unique_ptr<traced_calls>> calls_;

  bool has_trip(int loop) const {
    return trip >= 0 && loop != 0 && other_trip{trip, trip}.loop_has(g, loop);
  }
  // All loops that stand in no other have it, and nothing else reads what is as long.
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

/// Why a body is no function: it reads elements, writes, draws, exchanges.
struct not_recorded {};

/// Records what this thread does with tensors as the nodes of a graph, while it lives. Nothing of
/// it runs; tensors from outside are inputs.
template <class In>
class basic_graph_recorder : graph_tensors {
 public:
  owned_graph g;
  list<int> leaves;         ///< nodes
  list<ref<impl>> outside;  ///< and the tensors that they are
  bool checkpoints = false;  ///< something is a checkpoint()

  basic_graph_recorder()
      : graph_tensors{&name, &node_of},
        before_(own_recording<In>()),
        segment_(std::exchange(this_thread.segment, nullptr)),
        in_pass_(std::exchange(this_thread.in_pass, &leave)) {
    g.tensors = this;
    own_.outer = &before_;
    own_.device = this_thread.device;
    this_thread.recording = &own_;
  }
  ~basic_graph_recorder() {
    this_thread.recording = &before_;
    this_thread.segment = segment_;
    this_thread.in_pass = in_pass_;
    tensors_.clear();
    if (g.own_loops) delete[] g.loops;
    while (impl* const t = own_.first) {  // somebody holds it, for whom it is nothing
      t->failed = true;
      t->index = no_node;
      t->leave_pending();
      if (t->op->exchanges) t->release();  // it has held itself
    }
    writes_.end(false);
  }
  basic_graph_recorder(const basic_graph_recorder&) = delete;
  basic_graph_recorder& operator=(const basic_graph_recorder&) = delete;

  int node_of(impl* t) {
    int at = known(*t);
    if (at >= 0) return at;
    list<impl*> stack(1, t);
    while (!stack.empty()) {
      impl& top = *stack.back();
      const int depth = stack.size();
      for (int k = top.arity - 1; k >= 0 && known(top) == no_node; --k)
        if (known(*top.in[k]) == no_node) stack.push_back(top.in[k].get());
      if (stack.size() > depth) continue;
      stack.pop_back();
      if (known(top) == no_node) add(top);
    }
    return known(*t);
  }
  int node_of(const handle& h) { return node_of(h.value()); }
  /// The tensor that stands for a node.
  impl* tensor(int at) {
    if (tensors_.size() <= at) tensors_.resize(at + 1);
    if (tensors_[at]) return tensors_[at].get();
    node n = g.nodes[at];
    n.arity = 0;
    ref<impl> t = make_impl<In>(n, nullptr);
    t->anywhere = false;
    t->needs_grad = n.needs_grad;
    t->index = at;
    own_.add(t.get());
    return (tensors_[at] = std::move(t)).get();
  }
  void name(int at, handle& result) { result.adopt(ref<impl>::share(tensor(at)).take()); }

  /// The body is at its end, and its tensors are let go: whether it has left nothing behind.
  bool complete() {
    tensors_.clear();
    return own_.size() == 0 && own_.gradients.empty() && own_.closures.empty() && !own_.left &&
           writes_.empty();
  }
  [[noreturn, gnu::cold]] static void leave() {
    if (auto* const own = this_thread.recording) own->left = true;
    throw not_recorded{};
  }

 private:
  static void name(graph_tensors& self, int at, handle& result) {
    static_cast<basic_graph_recorder&>(self).name(at, result);
  }
  static int node_of(graph_tensors& self, const handle& h) {
    return static_cast<basic_graph_recorder&>(self).node_of(h);
  }

  // A call has several nodes: those of its results.
  static constexpr int first_call = -2;
  int known(impl& t) {
    if (t.pending.load(std::memory_order_acquire) == &own_) {
      if (is<op::output>(t) && is<op::call>(*t.in[0]) && t.in[0]->index != no_node)
        return results_[first_call - t.in[0]->index +
                        t.template attributes<op::output>().number];
      return t.index;
    }
    const auto [at, is_new] = outside_.emplace(&t, no_node);
    if (is_new) at->second = add_outside(t);
    return at->second;
  }
  // Zeros are numbers of the graph, as the sums of gradients begin with them; others may change.
  int add_outside(impl& t) {
    if (t.device != this_thread.number && !t.anywhere) leave();
    node n;  // another thread may have what it is made of dropped
    n.op = t.op;
    n.type = t.type;
    n.attr = t.attr;
    n.set_shape(t.dims_shape());
    n.needs_grad = t.needs_grad;
    if (is<op::constant>(t) && t.template attributes<op::constant>().value == 0) {
      held_.push_back(ref<impl>::share(&t));
      return g.add(n);
    }
    n.op = &builtin<op::input>;
    n.attr = {};
    n.template set<op::input>({});
    outside.push_back(ref<impl>::share(&t));
    leaves.push_back(g.add(n));
    return leaves.back();
  }
  void add(impl& t) {
    if (t.meta || t.op->impure || t.op->moves || t.device != this_thread.number) leave();
    if (is<op::call>(t)) {
      list<int> in;
      for (int k = 0; k < t.arity; ++k) in.push_back(known(*t.in[k]));
      t.index = first_call - results_.size();
      const auto& f = basic_function<In>::of(t);
      return f.add_to(g, in.data(), f.trip, results_);
    }
    checkpoints |= static_cast<bool>(t.part);
    node n{t};
    n.needs_grad = t.needs_grad;
    g.lists.open(n, t.arity);
    int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) in[k] = known(*t.in[k]);
    t.index = g.add(n);
    if (tensors_.size() < g.count) tensors_.resize(g.count);
    tensors_[t.index] = ref<impl>::share(&t);
  }

  later<In, recording>& before_;
  basic_segment_recorder<void>* segment_;
  void (*in_pass_)();
  const eager_mode_guard traced_{false};
  later<In, write_log> writes_;
  later<In, recording> own_;
  list<ref<impl>> tensors_;  // per node, where there is one
  list<ref<impl>> held_;
  list<int> results_;  // of calls
  later<In, std::unordered_map<impl*, int>> outside_;
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

/// Results of a call of a function, from one on.
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
/// Calls a function: its results, which are pending, together, as another thread may have them run.
template <class In>
list<ref<impl>> call_function(ref<call_record> f, const list<ref<impl>>& inputs) {
  node n;
  n.op = &call_info<In>;
  n.arity = inputs.size();
  list<impl*> in;
  for (const ref<impl>& t : inputs) {
    make_recordable<In>(*t);
    in.push_back(t.get());
  }
  const ref<impl> call = make_impl<In>(n, in.data());
  call->made_by = std::move(f);
  list<ref<impl>> made = results_of_call<In>(*call, basic_function<In>::of(*call), 0);
  later<In, recording>& to = own_recording<In>();
  const std::lock_guard hold(to.planning);
  to.add(call.get());
  for (const ref<impl>& t : made) to.add(t.get());
  return made;
}
/// In eager mode calls run at once.
template <class In>
void calls_made() {
  if (is_eager_mode()) later<In, tracer>::flush(own_recording<In>(), "eager mode", true);
}

}  // namespace xla::detail
