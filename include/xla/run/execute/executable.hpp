// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/base/list.hpp"
#include "xla/run/execute/arena_store.hpp"
#include "xla/run/execute/tile.hpp"
#include "xla/run/plan/specialize.hpp"
#include "xla/run/state/generator.hpp"

namespace xla::detail {

/// The memory of one call in flight: the arena, and where every value lies.
template <class In>
struct basic_frame {
  arena_store& store;
  arena memory;
  list<void*> table;
  bool held = false;   ///< the memory is this frame's
  bool ready = false;  ///< and has what depends on sizes alone

  basic_frame(const later<In, plan>& p, arena_store& from) : store(from), table(p.places.size()) {}
  basic_frame(const basic_frame&) = delete;
  [[gnu::cold]] ~basic_frame() { store.remove(memory, held); }
};
using frame = basic_frame<void>;

/// Writes a number as an element; integers from exact.
template <class In = void>
inline void store_number(void* to, dtype type, double value, std::int64_t exact) {
  switch (type) {
    case dtype::float32: *static_cast<float*>(to) = static_cast<float>(value); break;
    case dtype::float64: *static_cast<double*>(to) = value; break;
    case dtype::int32: *static_cast<std::int32_t*>(to) = static_cast<std::int32_t>(exact); break;
    case dtype::int64: *static_cast<std::int64_t*>(to) = exact; break;
    case dtype::uint8: *static_cast<std::uint8_t*>(to) = static_cast<std::uint8_t>(exact); break;
    case dtype::boolean: *static_cast<bool*>(to) = value != 0; break;
    case dtype::bfloat16: *static_cast<bfloat16*>(to) = bfloat16(value); break;
  }
}

/// Runs a step on its operands, whose shapes are wanted by library steps.
template <class In = void>
inline void run_on(const later<In, plan>& p, const ready_step& s, void* const* pointers,
                   const shape* shapes, const rng_state* random) {
  if (s.kind == step_kind::map) {
    const auto loops = p.loops[s.loops];
    if (s.kernel.map) return kernel::run_map(loops, {s.kernel.map}, pointers, s.ops);
    const later<In, tile_region> region(p.source, *s.source);
    kernel::run_map(loops, region.kernel(), pointers, s.ops);
  } else if (s.kind == step_kind::row) {
    kernel::run_rows(p.loops[s.loops], s.kernel.row, s.kernel.scratch_bytes, pointers, s.inputs,
                     s.ops);
  } else {
    kernel_call call;
    call.out = pointers[s.inputs];
    call.in = pointers;
    call.in_shapes = shapes;
    call.out_shape = shapes + s.inputs;
    call.attr = s.attr;
    call.size = s.size;
    call.at = s.at;
    if (s.random >= 0) {
      call.seed = random[s.random].seed;
      call.offset = random[s.random].offset;
    }
    s.op->run(call);
  }
}
template <class In = void>
void run_step(const later<In, plan>& p, const ready_step& s, void* const* table,
              const rng_state* random) {
  void* pointers[kernel::max_operands];
  const int* operands = &p.operands[s.first_operand];
  for (int k = 0; k < s.operands; ++k) pointers[k] = table[operands[k]];
  run_on<In>(p, s, pointers, &p.operand_shapes[s.first_shape], random);
}

XLA_INSTANCE(void run_step<void>(const plan&, const ready_step&, void* const*, const rng_state*));

/// Runs a step of a group on one slice; memory is that of the thread.
template <class In = void>
inline void run_on_slice(const later<In, plan>& p, const ready_step& s, void* const* table,
                         std::byte* memory, std::int64_t slice) {
  const shape& sliced = p.sliced[s.sliced];
  std::int64_t index[max_rank];
  for (int i = sliced.rank - 1; i > 0; --i) {
    index[i] = slice % sliced[i];
    slice /= sliced[i];
  }
  index[0] = slice;
  void* pointers[kernel::max_operands];
  const int* operands = &p.operands[s.first_operand];
  const slice_place* places = &p.slice_places[s.first_slice];
  for (int k = 0; k < s.operands; ++k) {
    if (places[k].offset >= 0) {
      pointers[k] = memory + places[k].offset;
      continue;
    }
    std::int64_t offset = 0;
    for (int i = 0; i < sliced.rank; ++i) offset += index[i] * places[k].strides[i];
    pointers[k] = static_cast<std::byte*>(table[operands[k]]) + offset;
  }
  run_on<In>(p, s, pointers, &p.slice_shapes[s.first_slice], nullptr);
}

/// Runs the steps of a group. Each thread takes a slice, and leads it through all of them; or its
/// share of the steps.
template <class In = void>
void run_group(const later<In, plan>& p, const step_group& g, void* const* table,
               std::byte* arena) {
  if (g.slices == step_group::whole)
    return kernel::parallel_for(g.threads, [&](std::int64_t thread) {
      const int* border = &p.borders[g.borders + static_cast<int>(thread)];
      for (int i = border[0]; i < border[1]; ++i) run_step<In>(p, p.steps[i], table, nullptr);
    });
  std::atomic<std::int64_t> next{0};
  kernel::parallel_for(std::min<std::int64_t>(num_threads(), g.slices), [&](std::int64_t thread) {
    std::int64_t slice = next.fetch_add(1, std::memory_order_relaxed);
    if (slice >= g.slices) return;
    // There may be more threads than when the plan was made.
    std::byte* memory = thread < g.threads
                            ? arena + g.offset + thread * g.bytes
                            : static_cast<std::byte*>(kernel::thread_scratch<step_group>(g.bytes));
    for (; slice < g.slices; slice = next.fetch_add(1, std::memory_order_relaxed))
      for (int i = g.first; i <= g.last; ++i) run_on_slice<In>(p, p.steps[i], table, memory, slice);
  });
}

XLA_INSTANCE(void run_group<void>(const plan&, const step_group&, void* const*, std::byte*));

template <class>
class basic_executable;
using executable = basic_executable<void>;

/// Runs the steps of plans in the executables' stead: a profiler that times them.
struct plan_watch {
  void (*run)(plan_watch& self, const executable& e, const frame& f, const rng_state* random);
  /// Whether it wants to be told of a plan, before that runs, what it and its slots are called.
  bool (*is_new)(plan_watch& self, const executable& e);
  void (*introduce)(plan_watch& self, const executable& e, const std::string& name,
                    const list<std::string>& slots);
};
/// Who runs them now; nullptr: the executables themselves.
inline constinit std::atomic<plan_watch*> watched_plans{nullptr};
/// Called before plans are made, where a program has something to do then.
inline constinit std::atomic<void (*)()> before_plans{nullptr};
template <class = void>
void prepare_for_plans() {
  if (const auto f = before_plans.load(std::memory_order_acquire)) f();
}

/// The arenas of all graphs that are traced.
template <class In = void>
arena_store& common_arenas() {
  static arena_store& all = *new later<In, arena_store>;
  return all;
}

/// A plan that can be called. Calls that write state follow one another; others have a frame each.
template <class In>
class basic_executable {
 public:
  /// Its arenas are of a store that outlives it.
  [[gnu::cold]] explicit basic_executable(later<In, plan>&& p,
                                          arena_store& store = common_arenas<In>())
      : plan_(std::move(p)), store_(store) {
    is_once_.assign(plan_.steps.size(), false);
    for (int i : plan_.once) is_once_[i] = true;
  }

  [[gnu::cold]] ~basic_executable() = default;
  basic_executable(const basic_executable&) = delete;

  const later<In, plan>& get_plan() const { return plan_; }

  later<In, std::unique_ptr<frame>> take_frame() {
    later<In, std::unique_ptr<frame>> f;
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
  [[gnu::noinline]] void give_frame(later<In, std::unique_ptr<frame>> f) noexcept {
    const std::lock_guard hold(store_.lock());
    store_.give(f->memory);
    f->held = false;
    frames_.push_back(std::move(f));  // into memory that has been there since the frame was made
  }

  /// Runs all steps on a frame whose table is complete; random has a state for each random op.
  void run(const later<In, frame>& f, const rng_state* random) const {
    if (plan_watch* w = watched_plans.load(std::memory_order_acquire))
      return w->run(*w, *this, f, random);
    run_all(f, random);
  }
  void run_all(const later<In, frame>& f, const rng_state* random) const {
    for (int i = 0; i < plan_.steps.size(); i = after(i))
      if (!is_once_[i]) run_one(i, f, random);
  }
  /// Runs a step, or the group that begins with it.
  void run_one(int i, const later<In, frame>& f, const rng_state* random = nullptr) const {
    const ready_step& s = plan_.steps[i];
    if (s.group < 0) return run_step<In>(plan_, s, f.table.data(), random);
    run_group<In>(plan_, plan_.groups[s.group], f.table.data(), f.memory.data);
  }
  /// The step that follows step i, or its group.
  int after(int i) const { return plan_.end_of(i) + 1; }
  /// True for a step that depends on sizes alone: it runs when a frame is made.
  bool is_once(int i) const { return is_once_[i]; }
  /// Different for each executable of the process.
  std::uint64_t id() const { return id_; }

 private:
  [[gnu::cold]] later<In, std::unique_ptr<frame>> make_frame() {
    frames_.reserve(made_ + 1);
    auto f = std::make_unique<later<In, frame>>(plan_, store_);
    ++made_;
    return f;
  }
  // In a sentence the largest value stands for all.
  memory_use largest() const {
    memory_use use{.of_all = true};
    std::int64_t most = -1;
    for (int v = 0; v < plan_.source.count.values; ++v)
      if (const placement& q = plan_.places[v]; q.where == place::arena && q.bytes > most) {
        most = q.bytes;
        use.function = plan_.source.values[v].op->name;
        use.dims = &plan_.shapes[v];
      }
    return use;
  }

  // Where values lie, numbers that the sizes decide, and the steps that depend on nothing else.
  [[gnu::cold]] void prepare(later<In, frame>& f) const {
    f.ready = false;
    for (int v = 0; v < f.table.size(); ++v) {
      const placement& q = plan_.places[plan_.base[v]];
      f.table[v] = q.where == place::arena ? f.memory.data + q.offset : nullptr;
    }
    const program& p = plan_.source;
    for (int v = 0; v < p.count.values; ++v) {
      const node& n = p.values[v];
      void* to = f.table[v];
      if (is<op::constant>(n)) store_number(to, n.type, n.value, n.attr);
      if (is<op::size>(n)) {
        const std::int64_t size = value_at(plan_.symbols, n.size);
        store_number(to, n.type, static_cast<double>(size), size);
      }
    }
    for (int i : plan_.once) run_step(plan_, plan_.steps[i], f.table.data(), nullptr);
    f.ready = true;
  }

  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  later<In, plan> plan_;
  arena_store& store_;
  list<char> is_once_;
  const std::uint64_t id_ = next_id();
  list<std::unique_ptr<frame>> frames_;
  int made_ = 0;
};

}  // namespace xla::detail
