// SPDX-License-Identifier: Apache-2.0
#pragma once

// The centre of traced mode, and of eager mode that fuses: makes a graph of the pending ops, finds
// its program by signature or lowers it, and runs it on the device's thread.
// run/state/recording.hpp holds the pending ops.

#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/text.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/execute/epilogue.hpp"
#include "xla/run/execute/exchange.hpp"
#include "xla/run/execute/executor.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/run/plan/debug.hpp"
#include "xla/run/plan/memory_of.hpp"
#include "xla/run/state/deferred_init.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/trace/traced_graph.hpp"

namespace xla::detail {

/// The program of a traced graph and its executable.
template <class In>
struct basic_traced_entry {
  list<std::uint64_t> signature;
  dependent<In, graph_summary> summary;
  dependent<In, traced_program> lowered;
  const backend* by = nullptr;  ///< the backend chosen to run it
  /// An op that the backend lacks; then the native backend runs the graph.
  const op_info* lacks = nullptr;
  dependent<In, std::unique_ptr<executable>> ready;
  std::int64_t bytes = 0;
  std::uint64_t used = 0;  ///< for eviction: time of the last lookup

  [[gnu::cold]] void build(const backend* wanted, const dependent<In, traced_graph>& graph) {
    by = wanted;
    if (by) {
      lowered.build(graph,
                    tags::without<"recompute", "bfloat16_storage", "layouts", "rows", "fuse">);
      lacks = by->lacks(lowered.view());
      if (!lacks) {
        ready = by->make(size_program<In>(lowered.view(), graph.leaf_shapes(), {}));
        return;
      }
    }
    lowered.build(graph, {});
    ready = std::make_unique<dependent<In, planned>>(
        size_program<In>(lowered.view(), graph.leaf_shapes(), {}), nullptr);
  }
  /// Its size in bytes, including its entry in the cache.
  [[gnu::cold]] std::int64_t size() const {
    return ready->bytes() + lowered.bytes() + bytes_of_lists(signature, summary);
  }
};
using traced_entry = basic_traced_entry<void>;

/// One execution of a traced graph. It holds its inputs and outputs until it is done.
template <class In>
struct basic_traced_job final : execution_job {
  dependent<In, std::shared_ptr<traced_entry>> entry;  ///< it may be evicted while it runs
  list<ref<buffer>> leaves;
  list<ref<buffer>> guests;   ///< buffers that other devices may write; the references prevent that
  list<ref<buffer>> outputs;  ///< of writes, then of results
  list<rng_state> random;
  bool holding = false;
  list<slot_value> slots;  ///< arguments of the executable: the leaves,
  list<buffer*> targets;   ///< and its outputs

  run_arguments arguments() const { return {slots.data(), targets.data(), random.data()}; }

  void run() override {
    for (const auto& b : leaves)
      if (const auto t = b->ticket.load()) dependent<In, executor>::instance().wait_for_other(t);
    if (const backend* by = entry->ready->made_by()) by->note_run();
    const timed sample(global_metrics<In>().execute_time);
    for (const auto& b : outputs) b->forget_forms();
    entry->ready->run(arguments());
  }
  /// Marks buffers as used by an execution in flight. Executions run in the order of their tickets,
  /// so a later one may overwrite them.
  void hold() noexcept {
    holding = true;
    for (auto* held : {&leaves, &outputs})
      for (auto& b : *held) b->in_flight.fetch_add(1, std::memory_order_acq_rel);
  }
  [[gnu::noinline]] void release() noexcept override {
    for (auto* held : {&leaves, &outputs}) {
      if (holding)
        for (auto& b : *held) b->in_flight.fetch_sub(1, std::memory_order_acq_rel);
      held->clear();
    }
    guests.clear();
    holding = false;
  }
};
using traced_job = basic_traced_job<void>;

/// Traced mode: plans and runs recorded ops. A cache finds graphs by their signature.
template <class In>
class basic_tracer {
 public:
  static basic_tracer& instance() { return made_once(this_thread.device->graphs); }
  static constexpr fork_order order = fork_order::planning;
  void before_fork() { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }
  void abandon() noexcept {}

  /// Runs everything that is pending in a recording, this thread's or another's, as one graph. A
  /// caller that waits runs it on its own thread, if no other execution is in flight. If memory
  /// runs out, the recording's writes are rolled back.
  [[gnu::cold, gnu::noinline]] static void flush(dependent<In, recording>& from,
                                                 std::string_view cause, bool waits) {
    if (this_thread.in_pass) this_thread.in_pass();
    const std::lock_guard planning(from.planning);
    if (from.size() == 0) return from.restart();
    const dependent<In, device_switch> there(*from.device);
    basic_tracer& own = instance();
    const std::lock_guard hold(own.lock_);
    try {
      own.start(from, cause, waits);
    } catch (const std::bad_alloc&) {
      roll_back<In>(from);
      throw;
    }
    from.restart();
  }
  void clear() {
    const std::lock_guard hold(lock_);
    dependent<In, executor>::instance().wait_all();
    cache_.clear();
    bytes_ = 0;
  }

 private:
  // The following runs once per new graph.
  [[gnu::cold]] void start(dependent<In, recording>& from, std::string_view cause, bool waits) {
    dependent<In, traced_graph> graph;
    {
      const timed sample(global_metrics<In>().tracing_time);
      graph.collect(from);
    }
    const auto job = std::make_shared<dependent<In, traced_job>>();
    job->entry = lookup(graph, cause);
    auto& entry = *job->entry;
    if (plan_watch* w = watched_plans())
      if (const auto* p = entry.ready->as_plan()) w->introduce(*w, *p, "traced", {});
    if (entry.lacks) entry.by->note_fallback(*entry.lacks);
    if (explains<In>(2)) report_execution<In>({"traced", cause, graph.hash(), &graph.nodes()});
    const bool small = work(entry.ready->about()) < (std::int64_t{1} << 18);
    auto& e = dependent<In, executor>::instance();
    if (!prepare(*job, graph, from) || ((small || waits) && e.idle())) {
      run_now(*job, graph);
      return publish(*job, graph, 0);
    }
    const std::uint64_t ticket = e.reserve();
    publish(*job, graph, ticket);
    job->hold();
    e.submit(job);
  }
  /// Evaluates the checks of values that exist, or runs the graph. A graph that a check refuses has
  /// failed.
  [[gnu::cold, gnu::noinline]] static bool attempt(dependent<In, traced_job>& job,
                                                   dependent<In, traced_graph>& graph, bool runs) {
    try {
      if (!runs) return job.entry->ready->check(job.arguments());
      job.run();
      return true;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      graph.fail();
      throw;
    }
  }
  /// If it throws, no tensor has changed.
  [[gnu::cold]] static void run_now(dependent<In, traced_job>& job,
                                    dependent<In, traced_graph>& graph) {
    list<ref<buffer>> outputs = job.outputs;
    dependent<In, executor>::instance().wait_all();
    attempt(job, graph, true);
    job.release();
    job.outputs.swap(outputs);  // which cannot fail
  }

  [[gnu::cold]] dependent<In, std::shared_ptr<traced_entry>> lookup(
      dependent<In, traced_graph>& graph, std::string_view cause) {
    auto& counts = global_metrics<In>();
    counts.graph_size.add(static_cast<double>(graph.size()));
    const backend* const by = chosen_backend<In>();
    auto [first, last] = cache_.equal_range(graph.hash());
    for (; first != last; ++first)
      if (first->second->by == by && first->second->signature == graph.signature()) {
        counts.cached_compile.add();
        first->second->used = ++uses_;
        return first->second;
      }
    prepare_for_plans<In>();
    auto entry = std::make_shared<dependent<In, traced_entry>>();
    {
      const timed sample(counts.compile_time);
      entry->signature = graph.signature();
      bool compiled = true;
      if (graph.calls()) compiled = graph.calls()->plan(*this, graph, *entry);
      else entry->build(by, graph);
      (compiled ? counts.uncached_compile : counts.cached_compile).add();
    }
    note_memory("traced", entry->ready->memory());
    if (explains<In>(1)) {
      list<const graph_summary*> known;
      for (auto& [hash, e] : cache_) known.push_back(&e->summary);
      dependent<In, analysis> a{std::string(cause), "traced", graph.hash()};
      a.changed = what_changed(graph.summary(), known, a.op);
      report(a, entry->ready->about(), entry->ready->memory());
    }
    entry->summary = graph.summary();
    entry->bytes = entry->size();
    make_room(entry->bytes);  // so that a program with ever new graphs does not grow
    entry->used = ++uses_;
    cache_.emplace(graph.hash(), entry);
    bytes_ += entry->bytes;
    return entry;
  }
  /// Makes room for a new entry by evicting the least recently used ones.
  [[gnu::cold]] void make_room(std::int64_t bytes) {
    while (!cache_.empty() &&
           (cache_.size() >= max_graphs || bytes_ + bytes > compilation_cache_limit<>())) {
      auto oldest = cache_.begin();
      for (auto i = cache_.begin(); i != cache_.end(); ++i)
        if (i->second->used < oldest->second->used) oldest = i;
      bytes_ -= oldest->second->bytes;
      cache_.erase(oldest);
      global_metrics<In>().evicted_compile.add();
    }
  }

  /// Allocates the outputs and evaluates checks. False if the graph must run before results are
  /// published, because a check reads values that the graph computes. A graph that a check refuses
  /// has failed. If an input or memory is missing, the graph is as it was.
  [[gnu::cold]] static bool prepare(dependent<In, traced_job>& job,
                                    dependent<In, traced_graph>& graph,
                                    const dependent<In, recording>& from) {
    const auto& p = job.entry->ready->about();
    const memory_space* const there = job.entry->ready->space();
    for (impl* leaf : graph.leaves()) {
      if (!job.entry->ready->takes(*leaf->data)) {
        if (leaf->data->space)
          wait_for<In>(*leaf->data);  // there may be nothing to transfer to the host yet
        elements_of(*leaf);
      }
      job.leaves.push_back(leaf->data);
      if (leaf->device != this_thread.number) job.guests.push_back(leaf->data);
      job.slots.push_back({.value = leaf->data.get()});
    }
    int aliased = 0;
    for (int i = 0; i < p.source.count.writes; ++i) {
      const write& w = p.source.writes[i];
      // One reference is the tensor's, one this job's.
      const bool over =
          p.in_place[i] && graph.only_here(w.slot) && job.leaves[w.slot]->held(there) == 2;
      aliased += over;
      job.outputs.push_back(over ? job.leaves[w.slot] : make(p, w.value, there));
    }
    for (int i = 0; i < p.source.count.results; ++i)
      job.outputs.push_back(
          make_result(p, p.source.results[i], *graph.outputs()[job.outputs.size()], from, there));
    for (const ref<buffer>& b : job.outputs) job.targets.push_back(b.get());
    global_metrics<In>().aliased_outputs.add(aliased);
    job.random = graph.random();
    return attempt(job, graph, false);
  }
  /// The memory for a result. A gradient takes that of the gradient that it replaces, if only the
  /// recording still has it, to restore it if memory runs out.
  [[gnu::cold, gnu::noinline]] static ref<buffer> make_result(const dependent<In, sized_program>& p,
                                                              int v, const impl& t,
                                                              const dependent<In, recording>& from,
                                                              const memory_space* there) {
    for (const auto& [meta, old] : from.gradients)
      if (meta->grad.get() == &t && old && old->unique())
        if (buffer* const b = old->data.get(); b && b->held(there) == 1 &&
                                               b->order.is_row_major() &&
                                               b->bytes >= static_cast<std::size_t>(p.bytes(v)))
          return old->data;
    return make(p, v, there);
  }
  [[gnu::noinline]] static ref<buffer> make(const dependent<In, sized_program>& p, int v,
                                            const memory_space* there) {
    const auto bytes = static_cast<std::size_t>(p.bytes(v));
    if (there) return ref<buffer>(there->make(*there, bytes));
    return ref<buffer>(buffer::make(bytes, {p.source.values[v].op->name, &p.shapes[v]}));
  }

  /// From now on the tensors have elements, which are valid when the ticket is done.
  [[gnu::cold]] static void publish(dependent<In, traced_job>& job,
                                    dependent<In, traced_graph>& graph,
                                    std::uint64_t ticket) noexcept {
    for (int i = 0; i < job.outputs.size(); ++i) {
      job.outputs[i]->ticket.store(ticket, std::memory_order_release);
      graph.outputs()[i]->data = job.outputs[i];
    }
    graph.finish();
  }
  [[gnu::cold]] static std::int64_t work(const dependent<In, sized_program>& p) {
    std::int64_t n = 0;
    for (int v = 0; v < p.source.count.values; ++v) n += p.bytes(v);
    return n;
  }

  template <class>
  friend class basic_traced_calls;
  static constexpr std::size_t max_graphs = 2048;  // PyTorch/XLA's XLA_COMPILATION_CACHE_SIZE

  sys::mutex lock_;
  dependent<In, std::unordered_multimap<std::uint64_t, std::shared_ptr<traced_entry>>> cache_;
  std::int64_t bytes_ = 0;
  std::uint64_t uses_ = 0;
};
using tracer = basic_tracer<void>;

/// Whether a tensor of a checkpointed segment has dropped its elements and can compute them again.
inline bool was_released(const impl& t) { return !t.is_pending() && !t.data && !t.failed; }

template <class In = void>
[[gnu::cold]] void compute_again(impl& last);

/// Throws for a tensor whose graph has failed: it can be neither read nor used.
template <class In = void>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_failed(const impl& t) {
  throw runtime_error(
      join({"xla: a value of ", t.op->name,
            " was read or used, but the graph that should have computed it has failed; "
            "compute it again"}));
}
XLA_INSTANCE(void refuse_failed<void>(const impl&));

template <class In = void>
[[gnu::cold]] ref<buffer> zero_elements(const impl& t) {
  const shape dims = t.dims_shape();
  ref<buffer> all(buffer::make(bytes_of<In>(t), {"a parameter or buffer", &dims}));
  std::memset(all->memory, 0, bytes_of<In>(t));
  return all;
}

/// Computes a deferred initial value, and those that it depends on.
template <class In>
[[gnu::cold, gnu::noinline]] void make_with_inputs(impl& t) {
  for (int i = 0; i < t.arity; ++i)
    if (impl& in = *t.in[i]; deferred_init::has(in.pending) || was_released(in))
      make_with_inputs<In>(in);
  if (is<op::input>(t)) t.data = zero_elements<In>(t);
  else compute_again<In>(t);
  t.leave_pending();
}

/// Computes a deferred initial value, unless another thread has done so.
template <class In>
[[gnu::cold, gnu::noinline]] void make_first_value(impl& t) {
  const std::lock_guard hold(deferred_init::instance().making);
  if (t.is_pending()) make_with_inputs<In>(t);
}

/// Makes sure that a tensor has elements, or a ticket for them, on whichever thread it is pending.
template <class In = void>
void make_ready(impl& t, std::string_view cause = "value read before sync") {
  if constexpr (has_traced_mode)
    if (pending_list* const list = t.pending.load(std::memory_order_acquire)) {
      if (deferred_init::has(list)) make_first_value<In>(t);
      else dependent<In, tracer>::flush(static_cast<dependent<In, recording>&>(*list), cause, true);
    }
  if (t.data) return;
  if (t.failed) refuse_failed<In>(t);
  compute_again(t);
}
XLA_INSTANCE(void make_ready<void>(impl&, std::string_view));

/// The elements of a tensor on the host in row-major order, computed if necessary, and waited for.
template <class In = void>
void* read_elements(impl& t) {
  make_ready<In>(t);
  wait_for<In>(*t.data);
  return elements_of(t);
}
XLA_INSTANCE(void* read_elements<void>(impl&));

/// Makes sure that this thread may record an op that reads a tensor: the tensor has elements, or is
/// pending in this thread.
template <class In = void>
void make_recordable(impl& t) {
  const pending_list* const list = t.pending.load(std::memory_order_acquire);
  if (list ? !dependent<In, recording>::reads(this_thread.recording, list) : t.failed || !t.data)
    make_ready<In>(t, "value used on another thread");
}

/// Computes a dropped tensor again, with all dropped tensors that it depends on.
template <class In>
[[gnu::cold]] void compute_again(impl& last) {
  list<impl*> stack(1, &last);
  while (!stack.empty()) {
    impl& t = *stack.back();
    const int depth = stack.size();
    for (int i = 0; i < t.arity && !t.data; ++i)
      if (was_released(*t.in[i])) stack.push_back(t.in[i].get());
    if (stack.size() > depth) continue;
    stack.pop_back();
    if (t.data) continue;
    const dependent<In, device_switch> there(device_of(t.device));
    for (int i = 0; i < t.arity; ++i) {
      make_ready(*t.in[i]);
      wait_for(*t.in[i]->data);
    }
    execute_now(t);
    if (t.op->results == 1) drop_inputs(t);  // else for its other results
  }
}
XLA_INSTANCE(void compute_again<void>(impl&));

template <class In>
void add_closure(dependent<In, std::unique_ptr<step_closure>> c) {
  own_recording<In>().closures.push_back(std::move(c));
}
XLA_INSTANCE(void add_closure<void>(std::unique_ptr<step_closure>));

/// Plans and runs the ops that this thread has recorded.
template <class In = void>
void flush_own(std::string_view cause, bool wait) {
  if constexpr (has_traced_mode)
    for (dependent<In, recording>* r = this_thread.recordings; r; r = r->next_own)
      dependent<In, tracer>::flush(*r, cause, wait);
}

/// Waits until a device has finished all submitted work.
template <class In = void>
void finish_device(device_context& d) {
  const dependent<In, device_switch> there(d);
  auto& e = dependent<In, executor>::instance();
  e.check(e.wait_all());
}

/// Runs the ops that this thread has recorded before an immediate exchange, so that exchanges keep
/// the program's order, which is the same on all replicas.
template <class In>
[[gnu::cold]] void run_recorded() {
  if constexpr (has_traced_mode) {
    flush_own<In>("an exchange", true);
    dependent<In, executor>::instance().wait_all();
  }
}
XLA_INSTANCE(void run_recorded<void>());

/// Runs all pending ops to the end, before a profile.
template <class In = void>
void finish_traced() {
  if (!has_traced_mode || !records_ops()) return;
  flush_own<In>("profile", true);
  for (device_context& d : the_devices)
    if (auto* const e = d.executions.load(std::memory_order_acquire)) e->wait_all();
}
XLA_INSTANCE(void finish_traced<void>());

template <class In>
[[gnu::cold]] void run_sync(bool wait) {
  global_metrics<In>().mark_step.add();
  flush_own<In>("user sync", wait);
  list<std::unique_ptr<step_closure>> closures;
  for (dependent<In, recording>* r = this_thread.recordings; r; r = r->next_own) {
    for (auto& c : r->closures) closures.push_back(std::move(c));
    r->closures.clear();
  }
  if (wait || !closures.empty()) {
    if (!this_thread.recording) finish_device<In>(*this_thread.device);
    for (dependent<In, recording>* r = this_thread.recordings; r; r = r->next_own)
      finish_device<In>(*r->device);
  }
  for (const auto& c : closures) c->run();
}
XLA_INSTANCE(void run_sync<void>(bool));

}  // namespace xla::detail
