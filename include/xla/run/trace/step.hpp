// SPDX-License-Identifier: Apache-2.0
#pragma once

// traced_step() and no_grad(): a step of traced mode, and a body without gradients. Compiled
// functions are steps by themselves.

#include <exception>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "xla/base/compiler.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/trace/graph_of.hpp"
#include "xla/run/trace/sync.hpp"

namespace xla {

/// Runs a body as one step of traced mode: earlier pending ops, and those that it records, are
/// planned and run, even if the body throws; the exception is rethrown.
template <class Body>
auto traced_step(Body&& body) {
  sync<Body>();  // named, so that clang instantiates it for a call and not for the include
  struct sync_at_exit {
    ~sync_at_exit() noexcept(false) {
      if (std::uncaught_exceptions() == entered) {
        sync<Body>();
        return;
      }
      try {
        sync<Body>();
      } catch (...) {
        // The body's exception is the one to report.
      }
    }
    int entered = std::uncaught_exceptions();
  } at_exit;
  return std::forward<Body>(body)();
}

namespace detail {
template <class Body>
auto run_without_grad(Body&& body) {
  const no_grad_scope off;
  return std::forward<Body>(body)();
}
}  // namespace detail

/// Runs a body in which nothing is recorded for backward(). In a compiled body pass a tensor or
/// module that it works on first, which identifies the graph.
template <class Body>
constexpr auto no_grad(Body&& body) {
  if (!__builtin_is_constant_evaluated()) return detail::run_without_grad(std::forward<Body>(body));
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: in a compiled body name what it uses: no_grad(x, [&] { … })");
  XLA_UNREACHABLE();
}
template <class X, class Body>
constexpr auto no_grad(const X& about, Body&& body) {
  if (!__builtin_is_constant_evaluated()) return no_grad(std::forward<Body>(body));
  detail::graph* const g = detail::graph_of(about);
  if (!g) throw std::logic_error("xla: no_grad(x, …): x is a constant, name an argument");
  const bool old = std::exchange(g->recording, false);
  if constexpr (std::is_void_v<decltype(body())>) {
    std::forward<Body>(body)();
    g->recording = old;
  } else {
    auto result = std::forward<Body>(body)();
    g->recording = old;
    return result;
  }
}

}  // namespace xla
