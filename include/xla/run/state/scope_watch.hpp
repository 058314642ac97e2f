// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a profile notices of the scopes of xla::Trace, and of ops that eager mode runs within them.
// run/profile/ implements it; without a profile nothing is noticed.

#include <cstdint>
#include <string_view>

#include "xla/run/state/context.hpp"
#include "xla/run/state/metric_store.hpp"

namespace xla::detail {

/// The observer of scopes. A thread refers to it (thread_context::scopes) while a scope is open.
struct scope_watch {
  /// A scope has ended on this thread; step: its number, -1: it has none. Times are of now_ns().
  void (*left)(scope_watch& self, std::string_view name, std::int64_t step, std::int64_t from,
               std::int64_t to) noexcept;
  /// An op of eager mode that began then has run on this thread.
  void (*ran)(scope_watch& self, const impl& t, std::int64_t from) noexcept;
};

/// Notifies a profile that an op has run, if a scope is open on this thread.
inline void note_in_scope(const impl& t, const timed& since) noexcept {
  if (scope_watch* const w = this_thread.scopes) [[unlikely]]
    w->ran(*w, t, since.start());
}

}  // namespace xla::detail
