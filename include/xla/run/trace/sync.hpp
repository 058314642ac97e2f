// SPDX-License-Identifier: Apache-2.0
#pragma once

// sync(), which runs the recorded ops, closures to call when they are done, and the end of an
// optimizer's step, where eager mode that fuses runs them. Reading a value runs the graph as well,
// but ends the step too early.

#include <memory>
#include <stdexcept>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/recording.hpp"

namespace xla {
namespace detail {

template <class In = void>
void add_closure(dependent<In, std::unique_ptr<step_closure>> c);

template <class In = void>
void run_sync(bool wait);

}  // namespace detail

/// Calls f once, at the end of this thread's next sync(), when all recorded ops have run. Use it to
/// print or log values without forcing the graph in the middle of a step. sync() throws the
/// exceptions of f.
template <class F>
void add_step_closure(F f) {
  struct holder : detail::step_closure {
    F f;
    explicit holder(F&& g) : f(std::move(g)) {}
    void run() override { f(); }
  };
  detail::add_closure<dependent<F, void>>(std::make_unique<holder>(std::move(f)));
}

/// Plans and runs everything recorded. Returns while it runs or, with wait, when it is done. Counts
/// MarkStep.
template <class In = void>
constexpr void sync(bool wait = false) {
  if (!__builtin_is_constant_evaluated()) detail::run_sync<dependent<In, void>>(wait);
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body is one graph already: call sync() after it");
}

/// Called by an optimizer after its step, at run time: in eager mode that fuses it runs the
/// recorded ops while the program prepares the next step. In other modes it does nothing.
template <class In = void>
void end_of_update();

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/trace/fused_graphs.hpp"
#include "xla/run/trace/lazy.hpp"
#endif
