// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes several writes transactional: if the body throws, none of them takes effect. Optimizers,
// averages, clipping and loops of eager mode use it; compiled steps write at their end anyway.

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"

namespace xla {
namespace detail {

/// From now on this thread's writes of parameters, buffers and gradients are logged; at the end
/// they stay or are undone.
template <class = void>
void* open_writes();
template <class = void>
void close_writes(void* opened, bool keep) noexcept;

}  // namespace detail

/// Runs a body that makes several writes, at run time: if it throws, none takes effect. For
/// optimizers.
template <class Body>
void transaction(Body&& body) {
  struct scope {
    void* opened = detail::open_writes<dependent<Body, void>>();
    bool keep = false;
    ~scope() { detail::close_writes<dependent<Body, void>>(opened, keep); }
  } writes;
  body();
  writes.keep = true;
}

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/state/undo_log.hpp"
#endif
