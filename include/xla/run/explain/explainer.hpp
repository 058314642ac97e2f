// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records which line called which op, and which graphs and compiled functions ran, while an
// explanation is active. Otherwise it records nothing.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "xla/base/fork.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/run/explain/call_stack.hpp"
#include "xla/run/plan/debug.hpp"
#include "xla/run/state/deferred_init.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/state/scope_watch.hpp"

namespace xla::detail {

/// Where a call came from: the number of its stack, and the line passed to a named function.
struct call_origin {
  int stack = -1;
  const char* file = "";
  unsigned line = 0;
  friend auto operator<=>(const call_origin&, const call_origin&) = default;
};

enum class op_start : std::int8_t { at_once, recorded, deferred };

/// The records of one explanation.
struct explain_session {
  struct graph_record {
    std::int64_t runs = 0;
    std::map<call_origin, std::int64_t> parts;
    struct plan {
      std::int64_t run;
      std::string changed;
      call_origin op;  ///< the first that differs
    };
    std::vector<plan> plans;
  };
  std::map<std::tuple<call_origin, const op_info*, op_start>, std::int64_t> calls;
  std::map<std::tuple<int, std::string, std::string>, graph_record>
      graphs;  // by stack, name, cause
};

/// The observer of all explanations.
template <class>
class basic_explainer : run_watch {
 public:
  static basic_explainer& instance() { return made_once(the_process.explainer); }
  static constexpr fork_order order = fork_order::stores;
  void before_fork() { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }
  basic_explainer() : run_watch{&note_called, &note_planned, &note_runs} {}

  [[gnu::cold]] void start(explain_session& s) {
    const std::lock_guard hold(lock_);
    sessions_.push_back(&s);
    the_process.runs.store(this, std::memory_order_release);
  }
  [[gnu::cold]] void stop(explain_session& s) {
    const std::lock_guard hold(lock_);
    std::erase(sessions_, &s);
    if (!sessions_.empty()) return;
    the_process.runs.store(nullptr, std::memory_order_release);
    recorded_.clear();
  }
  /// All stacks seen, by number.
  [[gnu::cold]] std::vector<call_stack> stacks() {
    const std::lock_guard hold(lock_);
    std::vector<call_stack> all(stacks_.size());
    for (const auto& [stack, number] : stacks_) all[static_cast<std::size_t>(number)] = stack;
    return all;
  }

 private:
  // Events that cannot be recorded for lack of memory are missing in the explanation.
  template <class F>
  void note(F&& f) noexcept {
    try {
      const call_stack stack = own_call_stack<>();
      const std::lock_guard hold(lock_);
      f(stacks_.emplace(stack, static_cast<int>(stacks_.size())).first->second);
    } catch (const std::bad_alloc&) {}
  }
  [[gnu::cold]] static void note_called(run_watch& self, const impl& t) noexcept {
    auto& e = static_cast<basic_explainer&>(self);
    e.note([&](int stack) { e.called(t, stack); });
  }
  void called(const impl& t, int stack) {
    const pending_list* const list = t.pending.load(std::memory_order_acquire);
    const bool waits = list && !deferred_init::has(list);
    const op_start how = waits    ? op_start::recorded
                         : t.data ? op_start::at_once
                                  : op_start::deferred;
    call_origin from{stack};
    const bool own = t.at.line() > 0 && !in_library(t.at.file_name());
    if (own) from.file = t.at.file_name(), from.line = t.at.line();
    if (waits) recorded_[outermost(list)][t.order] = from;
    for (explain_session* s : sessions_) ++s->calls[{from, t.op, how}];
  }
  /// The record of the graph in which a body is recorded.
  static const pending_list* outermost(const pending_list* list) {
    auto* r = static_cast<const recording*>(list);
    while (r->outer) r = r->outer;
    return r;
  }

  [[gnu::cold]] static void note_planned(run_watch& self, const analysis& a) noexcept {
    auto& e = static_cast<basic_explainer&>(self);
    e.note([&](int) { e.planned_[sys::this_thread_id()] = a; });
  }
  [[gnu::cold]] static void note_runs(run_watch& self, const graph_run& r) noexcept {
    auto& e = static_cast<basic_explainer&>(self);
    e.note([&](int stack) { e.runs(r, stack); });
  }
  void runs(const graph_run& r, int stack) {
    const auto plan = planned_.find(sys::this_thread_id());
    const bool is_new = plan != planned_.end() && plan->second.hash == r.hash;
    for (explain_session* s : sessions_) {
      auto& g = s->graphs[{stack, std::string(r.name), std::string(r.cause)}];
      ++g.runs;
      if (r.ops)
        for (const ref<impl>& t : *r.ops)
          if (const call_origin* const from = origin_of(*t)) ++g.parts[*from];
      if (!is_new) continue;
      g.plans.push_back({g.runs, plan->second.changed, {}});
      const int op = plan->second.op;
      if (const call_origin* const from = r.ops && op >= 0 ? origin_of(*(*r.ops)[op]) : nullptr)
        g.plans.back().op = *from;
    }
    if (is_new) planned_.erase(plan);
    if (r.ops && !r.ops->empty())
      if (const pending_list* const list = (*r.ops)[0]->pending.load()) recorded_.erase(list);
  }
  const call_origin* origin_of(const impl& t) const {
    const impl& of = is<op::output>(t) ? *t.in[0] : t;
    const auto list = recorded_.find(of.pending.load());
    if (list == recorded_.end()) return nullptr;
    const auto at = list->second.find(of.order);
    return at == list->second.end() ? nullptr : &at->second;
  }

  sys::mutex lock_;
  std::vector<explain_session*> sessions_;
  std::map<call_stack, int> stacks_;
  // Pending ops, by the number of their tensor.
  std::map<const pending_list*, std::map<std::uint64_t, call_origin>> recorded_;
  std::map<sys::thread_id, analysis> planned_;  // and not run yet
};
using explainer = basic_explainer<void>;

}  // namespace xla::detail
