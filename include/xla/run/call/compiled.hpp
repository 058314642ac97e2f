// SPDX-License-Identifier: Apache-2.0
#pragma once

// The steps of a call of a compiled function: check, bind, find or make the executable, run, write
// back. compiled_calls.hpp is the part that programs see.

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "xla/base/system/mutex.hpp"
#include "xla/base/text.hpp"
#include "xla/run/call/argument_checks.hpp"
#include "xla/run/call/call_pool.hpp"
#include "xla/run/call/compare_signatures.hpp"
#include "xla/run/call/compiled_calls.hpp"
#include "xla/run/call/signature_cache.hpp"
#include "xla/run/plan/debug.hpp"
#include "xla/run/plan/memory_of.hpp"
#include "xla/run/plan/print_plan.hpp"
#include "xla/run/state/metric_store.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/transform/print.hpp"

namespace xla::detail {

/// After the body has run: sets the training flags that the body sets.
template <class In>
class basic_flag_setter final : public leaf_visitor {
 public:
  explicit basic_flag_setter(const std::int8_t* flags) : next_(flags) {}
  void tensor(handle&, const tree_path&) override {}
  void cell(handle&, const tree_path&) override {}
  void scalar(Scalar&, const tree_path&) override {}
  void fact(double, const tree_path&) override { ++next_; }
  void flag(TrainingFlag& f, const tree_path&) override {
    if (const int on = *next_++; on != 0) f.set(on > 0);
  }

 private:
  const std::int8_t* next_;
};
using flag_setter = basic_flag_setter<void>;

/// A node of the list of all compiled functions.
struct compiled_function {
  virtual void hold(bool holds) = 0;
  compiled_function *next = nullptr, *previous = nullptr;

 protected:
  ~compiled_function() = default;
};

/// All compiled functions, for fork(): it waits until no call is changing its arguments, so that a
/// child can call them.
template <class In>
class basic_compiled_functions {
 public:
  static basic_compiled_functions& instance() { return made_once(the_process.functions); }
  static constexpr fork_order order = fork_order::functions;

  [[gnu::cold]] void add(compiled_function& f) noexcept {
    const std::lock_guard hold(lock_);
    f.next = first_;
    if (first_) first_->previous = &f;
    first_ = &f;
  }
  [[gnu::cold]] void remove(compiled_function& f) noexcept {
    const std::lock_guard hold(lock_);
    if (f.next) f.next->previous = f.previous;
    (f.previous ? f.previous->next : first_) = f.next;
  }
  [[gnu::cold]] void before_fork() {
    lock_.lock();
    for (compiled_function* f = first_; f; f = f->next) f->hold(true);
  }
  void abandon() noexcept {}
  [[gnu::cold]] void after_fork(bool) {
    for (compiled_function* f = first_; f; f = f->next) f->hold(false);
    lock_.unlock();
  }

 private:
  sys::mutex lock_;
  compiled_function* first_ = nullptr;
};
using compiled_functions = basic_compiled_functions<void>;

/// One compiled function: its options, a cache of executables for each combination of argument
/// types, and the tables of finished calls.
template <class In>
struct basic_compiled_calls<In>::state final : compiled_function {
  [[gnu::cold]] explicit state(CompileOptions o) noexcept : options(std::move(o)) {}
  [[gnu::cold]] ~state() { dependent<In, compiled_functions>::instance().remove(*this); }
  state(const state&) = delete;

  [[gnu::cold]] void hold(bool holds) override {
    if (holds) lock.lock();
    for (auto& c : caches) c.cache->hold(holds);
    calls.hold(holds);
    if (!holds) lock.unlock();
  }

  CompileOptions options;
  std::atomic<bool> warned_of_sizes = false;
  sys::mutex lock;
  /// The cache of one device; devices do not wait for each other.
  struct own_cache {
    const compiled_program* of;
    device_context* on;
    std::unique_ptr<signature_cache> cache;
  };
  list<own_cache> caches;
  dependent<In, call_pool> calls;

  dependent<In, signature_cache>& cache_of(const compiled_program& p) {
    const std::lock_guard hold(lock);
    for (auto& c : caches)
      if (c.of == &p && c.on == this_thread.device) return *c.cache;
    return add_cache(p);
  }
  [[gnu::cold]] dependent<In, signature_cache>& add_cache(const compiled_program& p) {
    prepare_for_plans<In>();
    auto made = std::make_unique<dependent<In, signature_cache>>(p.source, p.kernels, p.ops,
                                                                 options.backend);
    made->make_rows();
    caches.push_back({&p, this_thread.device, std::move(made)});
    return *caches.back().cache;
  }

  /// The executable for such arguments; runs nothing.
  std::shared_ptr<basic_executable<In>> made_for(const compiled_program& p, void* const* arguments);

  /// False if the arguments are on another device; then nothing has been done.
  bool work(const compiled_program& p, dependent<In, signature_cache>& cache,
            dependent<In, bound_call>& call, const call_arguments& arguments) {
    if (!bind(p, cache, call, arguments)) return false;
    auto e = cache.find(call);
    dependent<In, metric_store>& counts = global_metrics<In>();
    if (e) counts.cached_compile.add();
    else e = specialize(cache, call, arguments);
    if (explains<In>(2)) report_execution<In>({options.name, "compiled", cache.hash(e->about())});
    if (plan_watch* w = watched_plans())
      if (dependent<In, planned>* p = e->as_plan(); p && w->is_new(*w, *p))
        introduce(*w, *p, arguments);
    if (const auto before = e->about().before) before();
    const dependent<In, timed> sample(counts.execute_time);
    execute<In>(p, *e, call);
    if (p.flags) {
      dependent<In, flag_setter> setter(p.flags);
      arguments.visit(arguments.addresses, setter);
    }
    return true;
  }

  static bool bind(const compiled_program& p, const dependent<In, signature_cache>& cache,
                   dependent<In, bound_call>& call, const call_arguments& arguments) {
    bind_slots<In>(cache.source(), call, arguments);
    if (call.away) return false;
    check_facts<In>(p.facts, call, arguments);
    if (call.differentiable && cache.collects_gradients())
      check_inputs<In>(cache.source(), call, arguments);
    if (cache.misses_gradients()) note_absent<In>(cache.source(), call, arguments);
    if (cache.changes_arguments()) check_repeats<In>(cache.source(), call, arguments);
    return true;
  }

  [[gnu::cold]] dependent<In, std::shared_ptr<executable>> specialize(
      dependent<In, signature_cache>& cache, const dependent<In, bound_call>& call,
      const call_arguments& arguments) {
    dependent<In, metric_store>& counts = global_metrics<In>();
    const dependent<In, timed> sample(counts.compile_time);
    check_fixed_sizes<In>(cache.source(), call, arguments);
    check_sizes<In>(cache.source(), call, arguments);
    check_absent<In>(cache.source(), call, arguments);
    bool other_steps = false;
    const auto e = cache.add(call, options, other_steps);
    counts.uncached_compile.add();
    note_memory<In>(options.name, e->memory());
    const auto known = cache.known();
    if (!other_steps) warn_of_sizes(*e, known, arguments);
    if (explains<In>(1))
      report<In>(
          {"compile", options.name, cache.hash(e->about()), what_changed<In>(*e, known, arguments)},
          e->about(), e->memory());
    return e;
  }

  /// Warns once per function.
  [[gnu::cold]] void warn_of_sizes(const dependent<In, executable>& newest,
                                   const executables<In>& known, const call_arguments& arguments) {
    const varying_size v = size_that_varies<In>(newest, known);
    if (v.signatures < many_signatures || warned_of_sizes) return;
    text out("xla::compile: ");
    out << v.signatures << " signatures of " << options.name << " differ in one size alone, axis "
        << v.axis << " of " << arguments.slot_path(v.slot)
        << "; pad it to few sizes with data::pad_to, or batches with data::Buckets\n";
    if (warned_of_sizes.exchange(true)) return;
    global_metrics<In>().varying_size.add();
    dependent<In, debug_log>::instance().write(out.view());
  }

  [[gnu::cold]] void introduce(plan_watch& watch, const dependent<In, planned>& e,
                               const call_arguments& arguments) {
    list<std::string> slots;
    name_slots(e.about().source, arguments, slots);
    watch.introduce(watch, e, options.name, slots);
  }
  static void name_slots(const program& p, const call_arguments& arguments,
                         list<std::string>& names) {
    for (int i = 0; i < p.count.slots; ++i)
      names.push_back(arguments.slot_path(p.slots[i].left_in < 0 ? i : p.slots[i].left_in));
  }
};

template <class In>
[[gnu::cold]] basic_compiled_calls<In>::basic_compiled_calls(CompileOptions options) {
  auto& all = dependent<In, compiled_functions>::instance();
  state_ = new state(std::move(options));
  all.add(*state_);
}

template <class In>
[[gnu::cold]] basic_compiled_calls<In>::~basic_compiled_calls() {
  delete state_;
}

template <class In>
auto basic_compiled_calls<In>::reached() -> state& {
  if (!state_) throw runtime_error("xla::compile: this compiled function was moved from");
  return *state_;
}

/// The device of a call's arguments, which differs from this thread's. The call's references are
/// released, so that the device can write in place.
template <class In>
[[gnu::cold, gnu::noinline]] device_context& leave_to_device(dependent<In, bound_call>& call,
                                                             const call_arguments& arguments) {
  const impl* first = nullptr;
  for (int i = 0, at = 0; i < call.slots.size(); ++i) {
    const impl* const t = call.slots[i].value.get();
    if (!t || t->anywhere) continue;
    if (!first) first = t, at = i;
    if (first->device != t->device)
      the_process.crossing.load()->refuse("xla::compile", arguments.slot_path(at), first->device,
                                          arguments.slot_path(i), t->device);
  }
  device_context& there = device_of(first->device);
  call.clear();
  return there;
}

template <class In>
void basic_compiled_calls<In>::run(const compiled_program& p, void* const* arguments,
                                   handle* results) {
  auto& cache = reached().cache_of(p);
  struct borrowed {
    dependent<In, call_pool>& pool;
    dependent<In, std::unique_ptr<bound_call>> call = pool.take();
    ~borrowed() { pool.give(std::move(call)); }
  } own{state_->calls};
  const auto work = [&] { return state_->work(p, cache, *own.call, {arguments, p.visit}); };
  bool done = false;
  if (cache.changes_arguments() || p.flags) {
    const std::lock_guard one_at_a_time(cache.state_lock());
    done = work();
  } else {
    done = work();
  }
  if (!done) {
    const dependent<In, device_switch> there(leave_to_device<In>(*own.call, {arguments, p.visit}));
    return run(p, arguments, results);
  }
  for (int i = 0; i < p.source.count.results; ++i) results[i].adopt(own.call->result(i).take());
}

template <class In>
[[gnu::cold]] std::shared_ptr<basic_executable<In>> basic_compiled_calls<In>::state::made_for(
    const compiled_program& p, void* const* arguments) {
  auto& cache = cache_of(p);
  dependent<In, bound_call> call;
  const call_arguments all{arguments, p.visit};
  if (!bind(p, cache, call, all)) {
    const dependent<In, device_switch> there(leave_to_device<In>(call, all));
    return made_for(p, arguments);
  }
  auto e = cache.find(call);
  return e ? e : specialize(cache, call, all);
}

template <class In>
[[gnu::cold]] MemoryAnalysis basic_compiled_calls<In>::analyse(const compiled_program& p,
                                                               void* const* arguments) {
  return reached().made_for(p, arguments)->memory();
}

template <class In>
[[gnu::cold]] std::string basic_compiled_calls<In>::print(const compiled_program& p,
                                                          void* const* arguments) {
  const auto e = reached().made_for(p, arguments);
  if (const dependent<In, planned>* plan = e->as_plan()) {
    list<std::string> slots;
    state::name_slots(e->about().source, {arguments, p.visit}, slots);
    return print_plan<In>(plan->get_plan(), slots);
  }
  return detail::print<In>(e->about().source);
}

XLA_INSTANCE(class basic_compiled_calls<void>);

template <class In>
[[noreturn]] void refuse_pairing(int argument) {
  throw runtime_error(
      join({"xla::compile: argument ", decimal(argument),
            " is an optimizer of another model than the one it is passed with; pass models and "
            "their optimizers in the same order, and models without an optimizer last"}));
}
XLA_INSTANCE(void refuse_pairing<void>(int));

}  // namespace xla::detail
