// SPDX-License-Identifier: Apache-2.0
#pragma once

// Observers: of scopes of xla::Trace and eager ops within them, for a profile, and of everything
// that runs, for xla::explain(). run/profile/ and run/explain/ implement them; without them nothing
// is observed.

#include <cstdint>
#include <string_view>

#include "xla/run/state/context.hpp"
#include "xla/run/state/metric_store.hpp"

namespace xla::detail {

struct analysis;   // run/plan/debug.hpp
struct graph_run;  // there as well

/// The observer of scopes. A thread refers to it (thread_context::scopes) while a scope is open.
struct scope_watch {
  /// A scope has ended on this thread; step: its number, -1 if it has none. Times are from
  /// now_ns().
  void (*left)(scope_watch& self, std::string_view name, std::int64_t step, std::int64_t from,
               std::int64_t to) noexcept;
  /// An op of eager mode that began at that time has run on this thread.
  void (*ran)(scope_watch& self, const impl& t, std::int64_t from) noexcept;
};

/// Notifies a profile that an op has run, if a scope is open on this thread.
inline void note_in_scope(const impl& t, const timed& since) noexcept {
  if (scope_watch* const w = this_thread.scopes) [[unlikely]]
    w->ran(*w, t, since.start());
}

/// The observer of everything that runs.
struct run_watch {
  /// An op was called: it has run, is recorded, or is deferred until its value is read.
  void (*called)(run_watch& self, const impl& t) noexcept;
  /// A new signature or graph was planned.
  void (*planned)(run_watch& self, const analysis& a) noexcept;
  /// A compiled function is called, or a graph of these recorded ops ends.
  void (*runs)(run_watch& self, const graph_run& r) noexcept;
};
inline run_watch* watched_runs() { return the_process.runs.load(std::memory_order_acquire); }
inline void note_call(const impl& t) noexcept {
  if (run_watch* const w = watched_runs()) [[unlikely]]
    w->called(*w, t);
}

}  // namespace xla::detail
