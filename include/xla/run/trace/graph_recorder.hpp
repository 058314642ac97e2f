// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records this thread's ops on tensors as nodes of a new graph, without running it. The bodies of
// traced loops and the gradients of functions are recorded this way; ordinary traced ops are
// pending tensors.

#include <unordered_map>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/op/custom_gradient.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/state/undo_log.hpp"
#include "xla/run/trace/function.hpp"
#include "xla/run/trace/lazy.hpp"

namespace xla::detail {

/// Thrown if a body cannot be recorded as a function: it reads elements, or has an effect that a
/// function cannot express. The caller then runs it step by step.
struct not_recorded {};

/// Records this thread's ops on tensors as the nodes of a graph, during its lifetime. Nothing runs;
/// tensors from outside are inputs.
template <class In>
class basic_graph_recorder : graph_tensors {
 public:
  owned_graph g;
  list<int> leaves;           ///< nodes
  list<ref<impl>> outside;    ///< the tensor that each of these leaves stands for
  bool checkpoints = false;   ///< whether something was recorded within a checkpoint()
  list<std::uint64_t> draws;  ///< per node that draws: the position of its numbers

  basic_graph_recorder()
      : graph_tensors{&name, &node_of},
        before_(own_recording<In>()),
        segment_(std::exchange(this_thread.segment, nullptr)),
        in_pass_(std::exchange(this_thread.in_pass, &leave)) {
    settle_draws<In>();
    const rng_state numbers = generator::instance().next();
    own_.seed = numbers.seed;
    own_.drawn_from = own_.drawn_to = numbers.offset;
    g.tensors = this;
    own_.by = this;
    own_.outer = &before_;
    own_.drew_in_body = &drew;
    own_.replaced_in_body = &replaced;
    own_.device = this_thread.device;
    this_thread.recording = &own_;
  }
  ~basic_graph_recorder() {
    this_thread.recording = &before_;
    this_thread.segment = segment_;
    this_thread.in_pass = in_pass_;
    generator::instance().give_back({own_.seed, own_.drawn_from}, counters());
    put_back();
    tensors_.clear();
    drawn_.clear();
    if (g.own_loops) delete[] g.loops;
    while (impl* const t = own_.first) {  // still referenced elsewhere: unusable from now on
      t->failed = true;
      t->index = no_node;
      t->leave_pending();
      if (t->op->exchanges) t->release();  // a pending exchange refers to itself
    }
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
  /// A tensor from outside, before anything reads it, as an input even if it is zero.
  int input(const handle& h) {
    const auto [at, is_new] = outside_.emplace(h.value(), no_node);
    if (is_new) at->second = add_outside(*h.value(), true);
    return at->second;
  }
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

  /// Sets a parameter or buffer, or else a gradient, to the tensor of a node, until the end of the
  /// body.
  /// body.
  void write(cell* written, grad_meta* meta, int at) {
    note_write<In>(written, meta);
    impl* const t = tensor(at);
    if (written) {
      t->meta = written->meta;
      t->needs_grad = t->meta && t->meta->requires_grad;
    }
    (written ? written->current : meta->grad) = ref<impl>::share(t);
  }
  /// All writes so far, in the form of undo_log::each.
  template <class F>
  void each_write(F&& f) const {
    writes_.each(f);
  }
  void put_back() noexcept { writes_.put_back(own_); }

  /// The counters that its draws have consumed, which it returns to the generator.
  std::uint64_t counters() const { return own_.drawn_to - own_.drawn_from; }

  /// Ends the body: restores its writes, and releases its tensors. True if it has no further
  /// effect, and the generator has advanced by its draws alone.
  bool complete() {
    for (const ref<impl>& t : drawn_) node_of(t.get());
    drawn_.clear();
    if (generator::instance().next() != rng_state{own_.seed, own_.drawn_to}) return false;
    put_back();
    tensors_.clear();
    return own_.size() == 0 && own_.gradients.empty() && own_.closures.empty() && !own_.left;
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

  static void drew(dependent<In, recording>& self, impl& t, std::uint64_t seed,
                   std::uint64_t offset, std::uint64_t counters) {
    basic_graph_recorder& own = *static_cast<body&>(self).by;
    if (seed != self.seed || offset != self.drawn_to) leave();
    own.drawn_.push_back(ref<impl>::share(&t));
    self.drawn_to += counters;
  }
  static void replaced(dependent<In, recording>&, grad_meta& m) { note_write<In>(nullptr, &m); }

  // A call has one node per result, so it has no node of its own.
  static constexpr int first_call = -2;
  int known(impl& t) {
    if (t.pending.load(std::memory_order_acquire) == &own_) {
      const bool result = is<op::output>(t) && t.arity > 0;  // and does not stand for a node
      if (result && is<op::call>(*t.in[0]) && t.in[0]->index != no_node)
        return results_[first_call - t.in[0]->index + t.template attributes<op::output>().number];
      return t.index;
    }
    const auto [at, is_new] = outside_.emplace(&t, no_node);
    if (is_new) at->second = add_outside(t);
    return at->second;
  }
  // Zeros are recorded as constants, because sums of gradients begin with them; other values from
  // outside become inputs.
  int add_outside(impl& t, bool always_input = false) {
    if (t.device != this_thread.number && !t.anywhere) leave();
    node n;  // another thread may drop the inputs of that tensor
    n.op = t.op;
    n.type = t.type;
    n.attr = t.attr;
    n.set_shape(t.dims_shape());
    n.needs_grad = t.needs_grad;
    if (!always_input && is<op::constant>(t) && t.template attributes<op::constant>().value == 0) {
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
    const bool written = t.meta && is<op::detach>(t) && !t.meta->of_tensor;
    if ((t.meta && !written) || t.op->moves || t.device != this_thread.number) leave();
    if (is<op::call>(t)) {
      list<int> in;
      for (int k = 0; k < t.arity; ++k) in.push_back(known(*t.in[k]));
      t.index = first_call - results_.size();
      const auto& f = basic_function<In>::of(t);
      for (std::uint64_t from : f.draws) draws.push_back(drawn_at(t) + from);
      return f.add_to(g, in.data(), f.trip, results_);
    }
    checkpoints |= static_cast<bool>(t.part);
    node n{t};
    n.needs_grad = t.needs_grad && !written;
    if (t.op->impure) {
      for (const std::uint64_t from = drawn_at(t); std::uint64_t other : draws)
        if (from == other) leave();  // it is computed again
      draws.push_back(drawn_at(t));
      n.template set<op::drawing>({});
    }
    g.lists.open(n, t.arity);
    int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) in[k] = known(*t.in[k]);
    t.index = g.add(n);
    if (is<op::custom_gradient>(n)) add_saved_results(g, t.index);
    if (tensors_.size() < g.count) tensors_.resize(g.count);
    tensors_[t.index] = ref<impl>::share(&t);
  }

  // A call may be of a function that has drawn before.
  std::uint64_t drawn_at(const impl& t) const {
    const auto [seed, offset] = unpack<op::drawing::drawn>(t.attr);
    if (seed != own_.seed || offset < own_.drawn_from || offset > own_.drawn_to) leave();
    return offset - own_.drawn_from;
  }

  dependent<In, recording>& before_;
  basic_segment_recorder<void>* segment_;
  void (*in_pass_)();
  const body_scope body_;
  const eager_mode_guard traced_{false};
  dependent<In, undo_log> writes_;
  struct body : dependent<In, recording> {
    basic_graph_recorder* by = nullptr;
  } own_;
  list<ref<impl>> drawn_;    // draws run whether or not anything reads them
  list<ref<impl>> tensors_;  // per node, if it has one
  list<ref<impl>> held_;
  list<int> results_;  // of calls
  dependent<In, std::unordered_map<impl*, int>> outside_;
};

}  // namespace xla::detail
