// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <utility>

#include "xla/run/lazy.hpp"

namespace xla {

/// Runs a body as one step of traced mode: what was pending before it, and what it recorded, is
/// planned and run, also when the body throws; the exception goes on.
template <class Body>
auto step(Body&& body) {
  sync();
  struct sync_at_exit {
    ~sync_at_exit() noexcept(false) {
      if (std::uncaught_exceptions() == entered) {
        sync();
        return;
      }
      try {
        sync();
      } catch (...) {
        // The body's exception is the one to tell.
      }
    }
    int entered = std::uncaught_exceptions();
  } at_exit;
  return std::forward<Body>(body)();
}

/// Runs a body in which nothing is recorded for backward().
template <class Body>
auto no_grad(Body&& body) {
  const detail::no_grad_scope off;
  return std::forward<Body>(body)();
}

}  // namespace xla
