// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of tensors that are recorded and not yet executed. Each thread has one for what it
// records (run/state/recording.hpp); deferred first values of parameters are another
// (run/state/deferred_init.hpp).

#include <atomic>
#include <cstddef>
#include <mutex>

#include "xla/tensor/buffer.hpp"
#include "xla/tensor/impl.hpp"

namespace xla::detail {

/// The tensors that one thread has recorded and nobody has executed yet, in the order of recording.
/// Its thread alone adds to it; any thread may let go of one, or have them all executed.
struct pending_list {
  impl* first = nullptr;
  impl* last = nullptr;
  int count = 0;
  spin_lock links;
  /// Held while the list is planned, and while its tensors change in what a plan depends on.
  std::mutex planning;

  int size() noexcept {
    const std::lock_guard hold(links);
    return count;
  }
  /// From here on another thread may see the tensor: it must be complete.
  [[gnu::noinline]] void add(impl* t) noexcept {
    const std::lock_guard hold(links);
    t->pending_prev = last;
    t->pending_next = nullptr;
    (last ? last->pending_next : first) = t;
    last = t;
    ++count;
    t->pending.store(this, std::memory_order_release);
  }
  /// The tensor has its elements, has failed, or dies.
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
