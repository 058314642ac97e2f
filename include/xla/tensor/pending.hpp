// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of tensors that are recorded and not yet executed. Each thread has one for its recording
// (run/state/recording.hpp); deferred initial values of parameters are in another
// (run/state/deferred_init.hpp).

#include <atomic>
#include <cstddef>

#include "xla/base/system/mutex.hpp"
#include "xla/tensor/buffer.hpp"
#include "xla/tensor/impl.hpp"

namespace xla::detail {

/// The tensors that one thread has recorded and that are not yet executed, in the order of
/// recording. Only that thread adds to it; any thread may release one, or have them all executed.
struct pending_list {
  impl* first = nullptr;
  impl* last = nullptr;
  int count = 0;
  spin_lock links;
  /// Held while the list is planned, and while properties of its tensors change on which a plan
  /// depends.
  sys::mutex planning;

  int size() noexcept {
    const std::lock_guard hold(links);
    return count;
  }
  /// From now on another thread may see the tensor: it must be complete.
  [[gnu::noinline]] void add(impl* t) noexcept {
    const std::lock_guard hold(links);
    t->pending_prev = last;
    t->pending_next = nullptr;
    (last ? last->pending_next : first) = t;
    last = t;
    ++count;
    t->pending.store(this, std::memory_order_release);
  }
  /// Called when the tensor has its elements, has failed, or is destroyed.
  [[gnu::noinline]] void remove(impl* t) noexcept {
    const std::lock_guard hold(links);
    if (!t->is_pending()) return;
    (t->pending_prev ? t->pending_prev->pending_next : first) = t->pending_next;
    (t->pending_next ? t->pending_next->pending_prev : last) = t->pending_prev;
    --count;
    t->pending.store(nullptr, std::memory_order_release);
  }
};

inline void impl::leave_pending() noexcept {
  if (pending_list* const list = pending.load(std::memory_order_acquire)) list->remove(this);
}

}  // namespace xla::detail
