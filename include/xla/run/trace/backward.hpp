// SPDX-License-Identifier: Apache-2.0
#pragma once

// backward() on tensors at run time, in every mode. Inside compiled functions the compiler
// differentiates the graph (transform/backward.hpp), by the same rules of ops.

#include <algorithm>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/trace/machine.hpp"
#include "xla/run/trace/tensor_replay.hpp"
#include "xla/transform/backward.hpp"

namespace xla::detail {

/// Whether a tensor was passed to the step by a loop whose steps this thread runs, or whose body it
/// records: gradients end there.
[[gnu::noinline]] inline bool given_by_loop(const impl& t) {
  const auto* const own = this_thread.recording;
  if (t.arity == 0 && !t.meta && own && own->outer && t.is_pending()) return true;
  const running_loop* l = this_thread.loop;
  if (!l || !is<op::result>(t)) return false;
  const impl* const from = t.in[1].get();
  while (l && from != l->before && from != l->latest) l = l->outer;
  return l != nullptr;
}

/// Backward over tensors at run time, eager or traced: the same rules in the same order as over a
/// captured graph. Gradients are stored only after every rule has run.
template <class In>
class tensor_backward {
 public:
  explicit tensor_backward(impl* root) {
    if (!root) throw runtime_error("backward: an empty tensor");
    if (!root->needs_grad)
      throw runtime_error(
          "backward: nothing that this value was computed from requires a gradient");
    make_recordable(*root);
    gather(root);
    again_.start(*root, order_);
    gradient_.resize(order_.size());
    node one;
    one.op = &builtin<op::constant>;
    one.type = root->type;
    one.set<op::constant>({.value = 1});
    gradient_[position(root)].adopt(run_constant<In>(one).take());
  }

  /// Stores the gradients.
  void run() {
    const no_grad_scope off;
    visit(true, {}, false);
    for (auto& [meta, gradient] : found_)
      if (was_released(*gradient.value())) make_ready(*gradient.value());
    if (records_ops())
      for (auto& [meta, gradient] : found_) {
        const dependent<In, device_switch> there(device_of(gradient.value()->device));
        own_recording<In>().replaces(*meta);
      }
    for (auto& [meta, gradient] : found_) {
      note_write<In>(nullptr, meta.get());  // the undo log restores the old ones if memory runs out
      meta->grad = ref<impl>::share(gradient.value());
    }
  }
  /// Gradients for some tensors; differentiable again when the graph is kept.
  void run_for(const list<impl*>& inputs, handle* const* results, bool keep) {
    const grad_scope grad_mode(keep);
    visit(false, inputs, keep);
    for (int i = 0; i < inputs.size(); ++i) {
      const int at = position(inputs[i]);
      if (at >= 0 && gradient_[at].defined()) *results[i] = gradient_[at];
      else results[i]->adopt(zeros(*inputs[i]).take());
    }
  }

 private:
  // After a rule has run, its gradient is released, except those of the inputs; and also the values
  // that the forward pass saved for it, unless the graph is retained.
  void visit(bool collects, const list<impl*>& inputs, bool keep) {
    list<char> kept(order_.size());
    for (impl* x : inputs)
      if (const int at = position(x); at >= 0) kept[at] = true;
    for (int k = 0; k < order_.size(); ++k) {
      if (given_by_loop(*order_[k])) continue;
      if (const handle& arrived = gradient_[last_of(k)]; arrived.defined()) {
        if (hand_on(k)) continue;
        if (!order_[k]->meta) step(*order_[k], arrived);
        else if (collects) collect(*order_[k], arrived);
      }
      for (int r = k; r >= 0; r = next_of(r)) {
        again_.passed(*order_[r]);
        if (!kept[r]) gradient_[r] = handle();
        if (!keep) consume(r);
      }
    }
  }
  void consume(int k) {
    if (!order_[k]->meta) again_.consume(*order_[k]);
    held_[k].reset();
  }
  static ref<impl> zeros(const impl& like) {
    const dependent<In, device_switch> there(device_of(like.device));
    ref<impl> t = run_upload(like.type, like.dims_shape(), nullptr);
    std::memset(t->data->memory, 0, bytes_of(*t));
    return t;
  }

  // As in graph_backward: depth first along the operands, every tensor after its inputs; then
  // reversed.
  void gather(impl* root) {
    struct entry {
      impl* t;
      bool done;
    };
    list<entry> stack(1, {root, false});
    while (!stack.empty()) {
      const auto [t, done] = stack.back();
      stack.pop_back();
      if (done) {
        order_.push_back(t);
        held_.push_back(ref<impl>::share(t));
        continue;
      }
      if (!index_.emplace(t, 0).second) continue;
      stack.push_back({t, true});
      if (t->meta || given_by_loop(*t)) continue;
      if (t->consumed)
        throw runtime_error(
            "backward: called a second time through the same values; "
            "compute the loss again first");
      if (is<op::compiled_result>(*t)) go_into(*t);
      for (int i = t->arity - 1; i >= 0; --i)
        if (t->in[i]->needs_grad) stack.push_back({t->in[i].get(), false});
    }
    std::reverse(order_.begin(), order_.end());
    std::reverse(held_.begin(), held_.end());
    for (int k = 0; k < order_.size(); ++k) index_[order_[k]] = k;
  }

  // From now on the result of a compiled function is the same value, computed as in eager mode.
  static void go_into(impl& t) {
    if (t.arity > 0) return;
    if (!t.made_by)
      throw runtime_error(
          "backward: a compiled function returned a value that this one was computed from, and "
          "keeps nothing for gradients: call backward() in its body, detach() what it returns, or "
          "build with XLA_COMPILED_BACKWARD=1, as xla::runtime does; of a function with a loop "
          "that draws or exchanges nothing is kept");
    ref<impl> same = t.made_by->again(t.attributes<op::compiled_result>().number);
    change(t, [&](impl& own) {
      own.in[0] = std::move(same);
      own.arity = 1;
      own.made_by.reset();
    });
  }

  int position(impl* t) const {
    const auto at = index_.find(t);
    return at == index_.end() ? -1 : at->second;
  }

  static handle share(impl* t) {
    handle h;
    h.adopt(ref<impl>::share(t).take());
    return h;
  }

  void collect(impl& t, const handle& gradient) {
    if (!t.meta->requires_grad) return;
    for (auto& [meta, sum] : found_)
      if (meta.get() == t.meta.get()) return void(sum = add_gradients<In>(t.type, sum, gradient));
    found_.emplace_back(t.meta, gradient);
    if (impl* old = t.meta->grad.get())
      found_.back().second = add_gradients<In>(t.type, share(old), gradient);
  }

  void step(impl& t, const handle& gradient) {
    if (is<op::compiled_result>(t)) return pass(*t.in[0], gradient);
    const dependent<In, device_switch> there(device_of(t.device));
    gradient_scope s(t.arity);
    for (int i = 0; i < t.arity; ++i) {
      s.in[i] = share(again_.value(t.in[i].get(), gradient));
      s.needs[i] = t.in[i]->needs_grad;
    }
    handle* first = t.arity > 0 && s.needs[0] ? &gradient_[position(t.in[0].get())] : nullptr;
    if (first) s.collected = *first;
    s.out = share(again_.value(&t, gradient));
    s.grad = gradient_[position(&t)];
    if (const int k = position(&t); next_of(k) >= 0) take_handed(k, s);
    s.attr = t.attr;
    const bool call = is<op::call>(t);  // its rule continues from the sums of all inputs
    for (int i = 0; call && i < t.arity; ++i)
      if (s.needs[i]) s.result[i] = std::move(gradient_[position(t.in[i].get())]);
    apply_gradient(*t.op, s);
    if (s.replaces) *first = handle();
    for (int i = 0; i < t.arity; ++i)
      if (s.needs[i] && s.result[i].defined()) pass(*t.in[i], s.result[i]);
  }
  void pass(impl& to, const handle& gradient) {
    if (to.needs_grad) add_to(gradient_[position(&to)], to.type, gradient);
  }
  static void add_to(handle& sum, dtype type, const handle& gradient) {
    if (sum.defined()) sum = add_gradients<In>(type, sum, gradient);
    else sum = gradient;
  }

  // The gradients of an op's results wait for each other, in a list that begins at the op.
  bool hand_on(int result) {
    const ref<impl>* const of = result_of_input(*order_[result]);
    if (!of) return false;
    if (handed_.empty()) handed_.assign(order_.size(), -1);
    const int from = position(of->get());
    handed_[result] = handed_[from];
    handed_[from] = result;
    return true;
  }
  int next_of(int k) const { return handed_.empty() ? -1 : handed_[k]; }
  int last_of(int k) const { return next_of(k) < 0 ? k : next_of(k); }
  int number(int result) const { return order_[result]->attributes<op::result>().number; }
  void take_handed(int k, gradient_scope& s) {
    int count = 0;
    for (int r = handed_[k]; r >= 0; r = handed_[r]) count = std::max(count, number(r) + 1);
    s.make_grads(count);
    for (int r = handed_[k]; r >= 0; r = handed_[r])
      add_to(s.grads[number(r)], order_[r]->type, gradient_[r]);
  }

  list<impl*> order_;
  list<ref<impl>> held_;  // indexed like order_, until a rule has run
  dependent<In, std::unordered_map<impl*, int>> index_;
  list<handle> gradient_;
  list<int> handed_;  // if ops have several results
  dependent<In, tensor_replay> again_;
  list<std::pair<ref<grad_meta>, handle>> found_;
};

template <class In>
void run_backward(impl* root) {
  tensor_backward<In>(root).run();
}

template <class In>
void run_gradients(impl* root, const handle* const* inputs, handle* const* results, int count,
                   bool create_graph) {
  list<impl*> wanted;
  for (int i = 0; i < count; ++i) {
    wanted.push_back(inputs[i]->value());
    if (!wanted.back() || !wanted.back()->needs_grad)
      throw runtime_error(
          "grad: every input must require a gradient: call requires_grad_() on it before the loss "
          "is computed from it");
  }
  tensor_backward<In>(root).run_for(wanted, results, create_graph);
}

}  // namespace xla::detail
