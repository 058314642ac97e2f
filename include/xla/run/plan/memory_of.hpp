// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines the public functions of memory.hpp, and what a plan reports of its own memory.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/system/memory.hpp"
#include "xla/base/text.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/run/plan/plan.hpp"
#include "xla/run/state/compilation_cache.hpp"
#include "xla/run/state/metric_store.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla {

template <class>
std::int64_t memory_allocated() {
  return detail::memory_count::instance().now.load(std::memory_order_relaxed);
}
XLA_INSTANCE(std::int64_t memory_allocated<void>());

template <class>
std::int64_t max_memory_allocated() {
  return detail::memory_count::instance().most.load(std::memory_order_relaxed);
}
XLA_INSTANCE(std::int64_t max_memory_allocated<void>());

template <class>
std::int64_t memory_reserved() {
  return memory_allocated() + detail::buffer_cache::instance().cached();
}
XLA_INSTANCE(std::int64_t memory_reserved<void>());

template <class>
void empty_cache() {
  detail::memory_cache::release_all();
  sys::trim_heap();
}
XLA_INSTANCE(void empty_cache<void>());

template <class>
void set_cache_limit(std::int64_t bytes) {
  detail::buffer_cache::instance().set_limit(bytes);
}
XLA_INSTANCE(void set_cache_limit<void>(std::int64_t));

template <class>
void set_compilation_cache_limit(std::int64_t bytes) {
  detail::compilation_cache_limit<>() = bytes;
}
XLA_INSTANCE(void set_compilation_cache_limit<void>(std::int64_t));

template <class>
void reset_peak_memory_stats() {
  detail::memory_count::instance().most.store(memory_allocated(), std::memory_order_relaxed);
}
XLA_INSTANCE(void reset_peak_memory_stats<void>());

template <class>
MemoryInfo get_memory_info() {
  return {memory_allocated(), sys::physical_memory(), max_memory_allocated()};
}
XLA_INSTANCE(MemoryInfo get_memory_info<void>());

}  // namespace xla

namespace xla::detail {

/// Whether an earlier step caches the same form of the same weight, as far as the algorithm shows.
template <class In = void>
[[gnu::cold]] bool is_cached_before(const dependent<In, plan>& p, int step) {
  const ready_step& s = p.steps[step];
  const kernel_choice own = choice_of<In>(p, s);
  const auto same = [&](const ready_step& t) {
    if (t.cache_owner < 0 || t.op != s.op || t.attr != s.attr) return false;
    if (p.cache_owners[t.cache_owner - p.placements.size()] !=
        p.cache_owners[s.cache_owner - p.placements.size()])
      return false;
    const kernel_choice other = choice_of<In>(p, t);
    return other.cached == own.cached && std::string_view(other.algorithm) == own.algorithm;
  };
  for (int i = 0; i < step; ++i)
    if (same(p.steps[i])) return true;
  return false;
}

template <class In = void>
[[gnu::cold]] MemoryAnalysis memory_of(const dependent<In, plan>& p) {
  MemoryAnalysis m;
  for (int v = 0; v < p.placements.size(); ++v) {
    const placement& q = p.placements[v];
    if (q.where == storage::slot || q.where == storage::grad) m.arguments += q.bytes;
    else if (q.where == storage::result || q.where == storage::write) m.outputs += q.bytes;
  }
  for (int i = 0; i < p.source.count.writes; ++i)
    if (p.in_place[i]) m.aliased += p.placements[p.source.writes[i].value].bytes;
  for (int i = 0; i < p.steps.size(); ++i)
    if (p.steps[i].cache_owner >= 0 && !is_cached_before<In>(p, i))
      m.cached += choice_of<In>(p, p.steps[i]).cached;
  m.arena = p.arena_bytes;
  if (p.bodies) m.arena += p.bodies->arena_bytes();
  m.reused = p.unshared_bytes - p.arena_bytes;
  return m;
}
XLA_INSTANCE(MemoryAnalysis memory_of<void>(const plan&));

/// The memory of a plan besides its arena, with a table for one call.
template <class In = void>
[[gnu::cold]] std::int64_t bytes_of_plan(const dependent<In, plan>& p) {
  const std::int64_t table = p.placements.size() * static_cast<std::int64_t>(sizeof(void*));
  return static_cast<std::int64_t>(sizeof p) + bytes_of_sizes<In>(p) + p.loops.bytes() + table +
         bytes_of_lists(p.base, p.placements, p.operands, p.operand_shapes, p.order, p.steps,
                        p.group_of, p.groups, p.sliced, p.slice_shapes, p.slice_placements,
                        p.borders, p.once, p.copies, p.scalars, p.over, p.donated, p.moving,
                        p.cache_owners);
}
XLA_INSTANCE(std::int64_t bytes_of_plan<void>(const plan&));

/// A sample of ArenaBytes::<name> for every executable.
template <class In = void>
[[gnu::cold]] void note_memory(const std::string& name, const MemoryAnalysis& m) {
  get_metric(join({"ArenaBytes::", name}), metric_unit::bytes).add(static_cast<double>(m.arena));
}
XLA_INSTANCE(void note_memory<void>(const std::string&, const MemoryAnalysis&));

}  // namespace xla::detail
