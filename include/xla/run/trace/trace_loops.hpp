// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the bodies of loops at run time; traced_loop.hpp is its interface. The recorded body
// becomes a function (function.hpp) that a traced graph contains.

#include <memory>
#include <optional>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/run/trace/function_gradient.hpp"
#include "xla/run/trace/graph_recorder.hpp"
#include "xla/run/trace/loop_rules.hpp"
#include "xla/run/trace/traced_calls.hpp"
#include "xla/run/trace/traced_loop.hpp"
#include "xla/run/trace/written_state.hpp"
#include "xla/transform/loop_recorder.hpp"

namespace xla::detail {

/// A loop while its body is recorded: its arguments, the nodes of its body, and afterwards its
/// results.
template <class In>
class basic_traced_loop final : public traced_loop {
 public:
  basic_traced_loop(const handle* const* init, int carries, const handle* const* xs, int count,
                    const traced_steps& steps, call_site site)
      : steps_(steps),
        control_{.when = steps.when,
                 .unless = steps.unless,
                 .tested = steps.tested,
                 .bounded = steps.bounded,
                 .function = loop_function_named(site.function),
                 .at = site.at},
        needs_(carries),
        written_(steps.is_branch()) {
    for (int k = 0; k < carries; ++k) init_.push_back(*init[k]);
    for (int k = 0; k < count; ++k) xs_.push_back(*xs[k]);
  }

  void begin() override {
    loop_.reset();
    body_.reset();
    init_at_.clear();
    carry_.clear();
    slice_.clear();
    next_.clear();
    collected_.clear();
    used_.clear();
    body_.emplace();
    list<int> xs;
    for (const handle& h : init_) init_at_.push_back(body_->node_of(h));
    for (const handle& h : xs_)
      if (steps_.is_branch()) control_.decides = body_->input(h);
      else xs.push_back(body_->node_of(h));
    written_.enter(*body_);
    loop_.emplace(body_->g, loops_of_graphs<In>, steps_.trip, steps_.reverse, control_);
    body_->g.loops[loop_->number() - 1].every = steps_.every;
    for (int k = 0; k < init_.size(); ++k)
      carry_.push_back(loop_->carry(init_at_[k], needs_[k], false));
    written_.begin(*body_, *loop_);
    for (int at : xs) slice_.push_back(loop_->slice(at));
    number_ = no_node;
  }
  void carry(int k, handle& result) override { body_->name(carry_[k], result); }
  void slice(int k, handle& result) override { body_->name(slice_[k], result); }
  void number(handle& result) override {
    if (number_ < 0) number_ = loop_->step();
    body_->name(number_, result);
  }
  void hand_on(const handle& next) override { next_.push_back(body_->node_of(next)); }
  void keep(const handle& y) override {
    collected_.push_back(body_->node_of(y));
    used_.push_back(y.value()->consumed);
  }

  bool end() override {
    const graph& g = body_->g;
    bool further = false;
    for (int k = 0; k < carry_.size(); ++k)
      if (g.nodes[next_[k]].needs_grad && !g.nodes[carry_[k]].needs_grad)
        needs_[k] = further = true;
    const bool more = written_.end(*body_);
    if (!body_->complete()) body_->leave();
    if (more) return true;
    // The number of draws is unknown, as is whether a gradient exists afterwards.
    const bool any_number = steps_.is_branch() || (steps_.tested && !steps_.bounded);
    if (any_number && !body_->draws.empty()) body_->leave();
    if (steps_.tested && written_.has_gradients()) body_->leave();
    if (further && grad_enabled()) return true;
    loop_range& range = body_->g.loops[loop_->number() - 1];
    if (body_->checkpoints && steps_.every == 0 && !steps_.is_branch()) range.every = 1;
    range.checkpoints = this_thread.checkpoints;
    written_.hand_on(next_, init_at_);
    loop_->close(next_.data(), init_at_.data());
    list<int> results;
    for (int k = 0; k < carry_.size(); ++k) results.push_back(loop_->last(k, next_[k]));
    for (int k = 0; k < collected_.size(); ++k) {
      results.push_back(loop_->steps(collected_[k]));
      if (used_[k]) body_->g.nodes[results.back()].needs_grad = false;  // backward() was called
    }
    const int first_result = results.size();
    written_.results(*loop_, carry_.size(), results);
    list<ref<impl>> in;
    ref<call_record> f = make_function(results, in);
    const std::uint64_t each = body_->counters();
    loop_.reset();
    body_.reset();
    call(std::move(f), in, each * static_cast<std::uint64_t>(steps_.trip));
    if (steps_.trip > 0) written_.leave(made_, first_result);
    calls_made<In>();
    return false;
  }
  void result(int k, handle& result) override { result.adopt(made_[k].take()); }

 private:
  using function = basic_function<In>;

  void call(ref<call_record> f, const list<ref<impl>>& in, std::uint64_t counters) {
    settle_draws<In>();
    packed_attributes from{};
    const rng_state next = generator::instance().next();
    drawing numbers(counters);
    if (!static_cast<const function&>(*f.get()).draws.empty()) {
      const auto [seed, offset] = counters ? numbers.from() : next;
      from = pack(op::drawing::drawn{seed, offset});
      from.size = static_cast<std::int64_t>(counters);
    }
    made_ = call_function<In>(std::move(f), in, from, counters != 0);
    numbers.used();
  }
  ref<call_record> make_function(const list<int>& results, list<ref<impl>>& in) const {
    list<int> order;
    for (int i = 0; i < body_->leaves.size(); ++i) order.push_back(i);
    ref<function> f = function_of(results, order);
    const list<int> first = basic_function_gradient<In>::order_of_inputs(*f);
    list<int> sorted = first;
    list<char> there(order.size());
    for (int i : first) there[i] = true;
    for (int i : order)
      if (!there[i]) sorted.push_back(i);
    if (!first.empty()) f = function_of(results, sorted);
    for (int i : sorted) in.push_back(body_->outside[i]);
    f->sign();
    return ref<call_record>(f.take());
  }
  ref<function> function_of(const list<int>& results, const list<int>& order) const {
    const graph& g = body_->g;
    ref<function> f(new function);
    list<int> map(g.count, no_node);
    for (int i : order) {
      const int at = body_->leaves[i];
      map[at] = f->input(g.nodes[at], g.nodes[at].needs_grad);
    }
    add_graph<In>(g, 0, f->g, map);
    f->draws = body_->draws;
    for (int r : results) f->results.push_back(map[r]);
    return f;
  }

  traced_steps steps_;
  loop_control control_;
  list<char> needs_;
  list<handle> init_, xs_;
  list<char> used_;  // per y: a backward() passed through it
  basic_written_state<In> written_;
  list<int> init_at_, carry_, slice_, next_, collected_;
  int number_ = no_node;
  std::optional<basic_graph_recorder<In>> body_;
  std::optional<loop_recorder> loop_;
  list<ref<impl>> made_;
};

template <class In>
std::unique_ptr<traced_loop> open_traced_loop(const handle* const* init, int carries,
                                              const handle* const* xs, int count,
                                              const traced_steps& steps, call_site site) {
  return std::make_unique<basic_traced_loop<In>>(init, carries, xs, count, steps, site);
}
XLA_INSTANCE(std::unique_ptr<traced_loop> open_traced_loop<void>(const handle* const*, int,
                                                                 const handle* const*, int,
                                                                 const traced_steps&, call_site));

template <class In>
bool record_loop(void (*body)(void*), void* context) {
  try {
    body(context);
    return true;
  } catch (const not_recorded&) {
    return false;
  }
}
XLA_INSTANCE(bool record_loop<void>(void (*)(void*), void*));

}  // namespace xla::detail
