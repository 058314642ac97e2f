// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs plans: the executable of the native backend. It binds memory, then runs one step after the
// other on kernels; run/plan/ has decided what the steps are.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/owned_array.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/run/execute/arena_store.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/execute/executor.hpp"
#include "xla/run/execute/store_number.hpp"
#include "xla/run/execute/tile.hpp"
#include "xla/run/plan/known_regions.hpp"
#include "xla/run/plan/memory_of.hpp"
#include "xla/run/plan/specialize.hpp"

namespace xla::detail {

/// The memory of one call in flight: the arena, and the address of every value.
template <class In>
struct basic_frame {
  arena_store& store;
  arena memory;
  list<void*> table;
  bool held = false;   ///< this frame owns the arena's memory
  bool ready = false;  ///< which has the values that depend on sizes alone

  basic_frame(const dependent<In, plan>& p, arena_store& from)
      : store(from), table(p.placements.size() + p.cache_owners.size()) {}
  basic_frame(const basic_frame&) = delete;
  [[gnu::cold]] ~basic_frame() { store.remove(memory, held); }
};
using frame = basic_frame<void>;

/// The number of operand k among its op's results, for a library step.
template <class In = void>
int result_index(const dependent<In, plan>& p, const ready_step& s, int k) {
  return k == s.inputs ? 0
                       : p.source.values[p.operands[s.first_operand + k]]
                             .template attributes<op::output>()
                             .number;
}

/// Runs a step on its operands. Library steps need their shapes, and the epilogue that they notify
/// of finished tiles.
template <class In = void>
inline void run_on(const dependent<In, plan>& p, const ready_step& s, void* const* pointers,
                   const shape* shapes, const rng_state* random,
                   const kernel::epilogue* after = nullptr, buffer* cache_owner = nullptr) {
  if (s.kind == step_kind::map) {
    const auto loops = p.loops[s.loops];
    if (s.kernel.map) return kernel::run_map(loops, {s.kernel.map}, pointers, s.ops);
    const dependent<In, tile_region> region(p.source, *s.source);
    kernel::run_map(loops, region.kernel(), pointers, s.ops);
  } else if (s.kind == step_kind::row) {
    if constexpr (has_known_regions)
      if (!s.kernel.row)
        return run_column_region(p.source, *s.source, p.loops[s.loops], pointers, s.ops);
    kernel::run_rows(p.loops[s.loops], s.kernel.row, s.kernel.scratch_bytes, pointers, s.inputs,
                     s.ops);
  } else {
    kernel_call call;
    call.after = after;
    call.out = pointers[s.inputs];
    void* outs[max_results] = {};
    for (int k = s.inputs; k < s.operands; ++k) outs[result_index(p, s, k)] = pointers[k];
    call.outs = outs;
    call.in = pointers;
    call.in_shapes = shapes;
    call.out_shape = shapes + s.inputs;
    call.attr = s.attr;
    call.at = s.at;
    call.cache_owner = cache_owner;
    if (s.random >= 0) {
      call.seed = random[s.random].seed;
      call.offset = random[s.random].offset;
    }
    s.op->run(call);
  }
}
template <class In = void>
void run_step(const dependent<In, plan>& p, const ready_step& s, void* const* table,
              const rng_state* random, const kernel::epilogue* after = nullptr) {
  if (s.exchange >= 0) [[unlikely]]
    return s.loop ? s.loop->run(table, &p.operands[s.first_operand], random)
                  : p.exchanges->run_step(p, s, table);
  short_array<void*, kernel::max_operands> all(s.operands);
  void** const pointers = all.get();
  const int* operands = &p.operands[s.first_operand];
  for (int k = 0; k < s.operands; ++k) pointers[k] = table[operands[k]];
  buffer* const cache_owner =
      s.cache_owner < 0 ? nullptr : static_cast<buffer*>(table[s.cache_owner]);
  run_on<In>(p, s, pointers, p.operand_shapes.begin() + s.first_shape, random, after, cache_owner);
}

XLA_INSTANCE(void run_step<void>(const plan&, const ready_step&, void* const*, const rng_state*,
                                 const kernel::epilogue*));

/// The addresses of a step's operands in one slice of a group; memory is the thread's.
template <class In = void>
[[gnu::noinline]] void slice_pointers(const dependent<In, plan>& p, const ready_step& s,
                                      void* const* table, std::byte* memory, std::int64_t slice,
                                      void** pointers) {
  const shape& sliced = p.sliced[s.sliced];
  std::int64_t index[max_rank];
  for (int i = sliced.rank - 1; i > 0; --i) {
    index[i] = slice % sliced[i];
    slice /= sliced[i];
  }
  index[0] = slice;
  const int* operands = &p.operands[s.first_operand];
  const slice_placement* placements = &p.slice_placements[s.first_slice];
  for (int k = 0; k < s.operands; ++k) {
    if (placements[k].offset >= 0) {
      pointers[k] = memory + placements[k].offset;
      continue;
    }
    std::int64_t offset = 0;
    for (int i = 0; i < sliced.rank; ++i) offset += index[i] * placements[k].strides[i];
    pointers[k] = static_cast<std::byte*>(table[operands[k]]) + offset;
  }
}

/// Runs a step of a group on one slice; memory is the thread's.
template <class In = void>
inline void run_on_slice(const dependent<In, plan>& p, const ready_step& s, void* const* table,
                         std::byte* memory, std::int64_t slice) {
  void* pointers[kernel::max_operands];
  slice_pointers<In>(p, s, table, memory, slice, pointers);
  run_on<In>(p, s, pointers, &p.slice_shapes[s.first_slice], nullptr);
}

/// Calls f(a thread's memory, the number of a slice) for all slices of a group, shared by threads.
template <class In, class F>
void each_slice(const step_group& g, std::byte* arena, F f) {
  std::atomic<std::int64_t> next{0};
  kernel::parallel_for(std::min<std::int64_t>(num_threads(), g.slices), [&](std::int64_t thread) {
    std::int64_t slice = next.fetch_add(1, std::memory_order_relaxed);
    if (slice >= g.slices) return;
    // There may be more threads than when the plan was made.
    std::byte* memory = thread < g.threads
                            ? arena + g.offset + thread * g.bytes
                            : static_cast<std::byte*>(kernel::thread_scratch<step_group>(g.bytes));
    for (; slice < g.slices; slice = next.fetch_add(1, std::memory_order_relaxed)) f(memory, slice);
  });
}

/// Runs the steps of a group: each thread takes slices or images through all of them, or its share
/// of the steps, or the last step consumes the first one's parts.
template <class In = void>
void run_group(const dependent<In, plan>& p, const step_group& g, void* const* table,
               std::byte* arena) {
  if (g.run) return g.run(p, g, table, arena);
  if (g.slices == step_group::whole)
    return kernel::parallel_for(g.threads, [&](std::int64_t thread) {
      const int* border = &p.borders[g.borders + static_cast<int>(thread)];
      for (int i = border[0]; i < border[1]; ++i) run_step<In>(p, p.steps[i], table, nullptr);
    });
  each_slice<In>(g, arena, [&](std::byte* memory, std::int64_t slice) {
    for (int i = g.first; i <= g.last; ++i) run_on_slice<In>(p, p.steps[i], table, memory, slice);
  });
}

XLA_INSTANCE(void run_group<void>(const plan&, const step_group&, void* const*, std::byte*));

using planned = basic_planned<void>;

/// Runs the steps of plans in place of the executables: a profiler, which times them.
struct plan_watch {
  void (*run)(plan_watch& self, const planned& e, const frame& f, const rng_state* random);
  /// Whether an observer needs the names of a plan and its slots before the plan runs.
  bool (*is_new)(plan_watch& self, const planned& e);
  void (*introduce)(plan_watch& self, const planned& e, const std::string& name,
                    const list<std::string>& slots);
};
/// The current one; nullptr: the executables run the steps themselves.
inline plan_watch* watched_plans() { return the_process.watch.load(std::memory_order_acquire); }
template <class = void>
void prepare_for_plans() {
  if (const auto f = the_process.before_plans.load(std::memory_order_acquire)) f();
}

/// A plan that can be called. Calls that write state run one after the other; others each have a
/// frame.
template <class In>
class basic_planned final : public basic_executable<In> {
 public:
  /// kernels: by distinct key; null if regions run op by op. Its arenas come from a store that
  /// outlives it.
  [[gnu::cold]] basic_planned(dependent<In, sized_program>&& p, const region_kernel* kernels,
                              arena_store& store = made_once(this_thread.device->arenas))
      : basic_executable<In>(nullptr), plan_(std::move(p)), store_(store) {
    dependent<In, specializer>(plan_, kernels).run();
    is_once_.assign(plan_.steps.size(), false);
    for (int i : plan_.once) is_once_[i] = true;
  }
  [[gnu::cold]] ~basic_planned() override = default;

  const dependent<In, plan>& get_plan() const { return plan_; }
  const dependent<In, sized_program>& about() const override { return plan_; }
  [[gnu::cold]] MemoryAnalysis memory() const override { return memory_of<In>(plan_); }
  [[gnu::cold]] std::int64_t bytes() const override { return bytes_of_plan<In>(plan_); }
  dependent<In, planned>* as_plan() override { return this; }

  void run(const run_arguments& with) override {
    const borrowed_frame f(*this);
    point(with, f->table);
    run_on(*f, with);
  }
  /// Runs as long as next() returns true, which sets the addresses of slots and outputs, on one
  /// frame. moved: the slots whose addresses change from run to run. done() follows each run.
  template <class Next, class Done>
  void run_while(const run_arguments& with, const list<int>& moved, const Next& next,
                 const Done& done) {
    if (!next()) return;
    const borrowed_frame f(*this);
    point(with, f->table);
    for (;;) {
      run_on(*f, with);
      done();
      if (!next()) return;
      for (int i : moved)
        if (const int leaf = plan_.source.slots[i].leaf; leaf >= 0)
          f->table[leaf] = with.slots[i].value->host_copy;
      point_outputs(with, f->table);
    }
  }

  /// Calls f with the address of each value on a frame; f runs the steps:
  /// run/execute/bound_steps.hpp.
  template <class F>
  void on_frame(const run_arguments& with, const F& f) {
    const borrowed_frame now(*this);
    point(with, now->table);
    f(now->table.data());
  }

  [[gnu::cold]] bool check(const run_arguments& with) override {
    bool all = true;
    for (const ready_step& s : plan_.steps) {
      if (!s.source->check) continue;
      const placement& q = plan_.placements[plan_.base[plan_.source.inputs[s.source->first_input]]];
      if (q.where == storage::slot && !s.loop) try_check(s, *with.slots[q.index].value);
      else all = false;
    }
    return all;
  }

  /// Runs all steps on a frame whose table is complete; random has a state for each random op.
  void run_all(const dependent<In, frame>& f, const rng_state* random) const {
    for (int i = 0; i < plan_.steps.size(); i = after(i))
      if (!is_once_[i]) run_one(i, f, random);
  }
  /// Runs a step, or the group that begins with it.
  void run_one(int i, const dependent<In, frame>& f, const rng_state* random = nullptr) const {
    const ready_step& s = plan_.steps[i];
    if (s.group < 0 || s.loop) return run_step<In>(plan_, s, f.table.data(), random);
    run_group<In>(plan_, plan_.groups[s.group], f.table.data(), f.memory.data);
  }
  /// The step that follows step i, or its group.
  int after(int i) const { return plan_.end_of(i) + 1; }
  /// True for a step that depends on sizes alone and runs when a frame is made.
  bool is_once(int i) const { return is_once_[i]; }
  /// A number that is unique among the executables of the process.
  std::uint64_t id() const { return id_; }

 private:
  /// A frame for the duration of a run.
  class borrowed_frame {
   public:
    explicit borrowed_frame(basic_planned& from) : from_(from) {
      try {
        frame_ = from.take_frame();
      } catch (const std::bad_alloc&) {
        frame_ = from.take_frame();  // others may have released memory
      }
    }
    ~borrowed_frame() { from_.give_frame(std::move(frame_)); }
    borrowed_frame(const borrowed_frame&) = delete;
    dependent<In, frame>* operator->() const { return frame_.get(); }
    dependent<In, frame>& operator*() const { return *frame_; }

   private:
    basic_planned& from_;
    dependent<In, std::unique_ptr<frame>> frame_;
  };

  dependent<In, std::unique_ptr<frame>> take_frame() {
    dependent<In, std::unique_ptr<frame>> f;
    bool kept = false;
    {
      const std::lock_guard hold(store_.lock());
      if (frames_.empty()) {
        f = make_frame();
      } else {
        f = std::move(frames_.back());
        frames_.pop_back();
        kept = store_.take_again(f->memory);
      }
    }
    if (!kept) store_.take(f->memory, plan_.arena_bytes + 64, largest());
    f->held = true;
    if (!kept || !f->ready) prepare(*f);
    return f;
  }
  [[gnu::noinline]] void give_frame(dependent<In, std::unique_ptr<frame>> f) noexcept {
    const std::lock_guard hold(store_.lock());
    store_.give(f->memory);
    f->held = false;
    frames_.push_back(std::move(f));  // into memory that has existed since the frame was made
  }
  [[gnu::cold, gnu::noinline]] dependent<In, std::unique_ptr<frame>> make_frame() {
    frames_.reserve(made_ + 1);
    auto f = std::make_unique<dependent<In, frame>>(plan_, store_);
    ++made_;
    return f;
  }
  // An error sentence names the largest value.
  [[gnu::cold, gnu::noinline]] memory_use largest() const {
    memory_use use{.of_all = true};
    std::int64_t most = -1;
    for (int v = 0; v < plan_.source.count.values; ++v)
      if (const placement& q = plan_.placements[v]; q.where == storage::arena && q.bytes > most) {
        most = q.bytes;
        use.function = plan_.source.values[v].op->name;
        use.dims = &plan_.shapes[v];
      }
    return use;
  }

  // Sets the addresses of values, the numbers that sizes determine, and runs the steps that depend
  // on nothing else.
  [[gnu::cold, gnu::noinline]] void prepare(dependent<In, frame>& f) const {
    f.ready = false;
    for (int v = 0; v < plan_.placements.size(); ++v) {
      const placement& q = plan_.placements[plan_.base[v]];
      f.table[v] = q.where == storage::arena ? f.memory.data + q.offset : nullptr;
    }
    const program& p = plan_.source;
    for (int v = 0; v < p.count.values; ++v) {
      const node& n = p.values[v];
      void* to = f.table[v];
      if (is<op::constant>(n)) store_number(to, n.type, n.attributes<op::constant>());
      if (is<op::size>(n)) {
        const std::int64_t size = value_at(plan_.symbols, n.attributes<op::size>().of);
        store_number(to, n.type, {static_cast<double>(size), size});
      }
    }
    for (int i : plan_.once) run_step(plan_, plan_.steps[i], f.table.data(), nullptr);
    f.ready = true;
  }

  /// Sets the addresses of the call's inputs and outputs.
  void point(const run_arguments& with, list<void*>& table) const {
    const program& p = plan_.source;
    for (int i = 0; i < p.count.slots; ++i) {
      const program_slot& s = p.slots[i];
      if (s.leaf >= 0) table[s.leaf] = with.slots[i].value->host_copy;
      if (s.grad_leaf >= 0) table[s.grad_leaf] = with.slots[i].gradient->host_copy;
    }
    for (int v : plan_.scalars) {
      const node& n = p.values[v];
      const double number = with.slots[n.attributes<op::scalar>().slot].number;
      store_number(table[v], n.type, {number, static_cast<std::int64_t>(number)});
    }
    for (int i = 0; i < plan_.cache_owners.size(); ++i) {
      buffer* const b = with.slots[plan_.cache_owners[i]].value;
      table[plan_.placements.size() + i] = b->space ? nullptr : b;
    }
    point_outputs(with, table);
  }
  void point_outputs(const run_arguments& with, list<void*>& table) const {
    for (int i = 0; i < plan_.copies.size(); ++i)
      if (plan_.copies[i] < 0)
        table[plan_.base[output_of(plan_.source, i)]] = with.outputs[i]->memory;
    for (int v : plan_.donated) {
      const placement& q = plan_.placements[v];
      table[v] = static_cast<std::byte*>(with.outputs[q.index]->memory) + q.offset;
    }
    for (int v : plan_.moving) table[v] = table[plan_.base[v]];
  }
  void run_on(const dependent<In, frame>& f, const run_arguments& with) {
    if (plan_.exchanges) plan_.exchanges->run_all(*this, f, with.random);
    else if (plan_watch* w = watched_plans()) w->run(*w, *this, f, with.random);
    else run_all(f, with.random);
    for (int i = 0; i < plan_.copies.size(); ++i)
      if (const int v = plan_.copies[i]; v >= 0)
        std::memcpy(with.outputs[i]->memory, f.table[v], static_cast<std::size_t>(plan_.bytes(v)));
  }

  // The checked value is the first input; the result and other inputs do not matter.
  [[gnu::cold]] void try_check(const ready_step& s, buffer& checked) const {
    wait_for(checked);
    list<void*> table(plan_.placements.size());
    list<ref<buffer>> others;
    for (int k = 0; k < s.operands; ++k) {
      const int v = plan_.operands[s.first_operand + k];
      if (k == 0) {
        table[v] = checked.host_copy;
        continue;
      }
      const auto bytes = static_cast<std::size_t>(plan_.placements[v].bytes);
      table[v] = std::memset(others.emplace_back(buffer::make(bytes))->memory, 0, bytes);
    }
    run_step(plan_, s, table.data(), nullptr);
  }

  dependent<In, plan> plan_;
  arena_store& store_;
  list<char> is_once_;
  const std::uint64_t id_ = the_process.executables.fetch_add(1, std::memory_order_relaxed) + 1;
  list<std::unique_ptr<frame>> frames_;
  int made_ = 0;
};

}  // namespace xla::detail
