// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defers the initialisation of large parameters until they are read, so that a model that is filled
// from a file draws no weights. Other pending tensors are in recording.hpp.

#include <cstdint>

#include "xla/base/system/mutex.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/tensor/impl.hpp"
#include "xla/tensor/pending.hpp"

namespace xla::detail {

/// The deferred initial values of large parameters and buffers, which are computed when they are
/// first read. Each is a tensor with its op, its inputs and its position among the random numbers,
/// or zeros; it is pending here, and not in a graph. Without traced mode there are none.
class deferred_init : public pending_list {
 public:
  static deferred_init& instance() { return made_once(the_process.unread); }
  /// Whether a pending tensor is a deferred initial value.
  static bool has(const pending_list* list) noexcept {
    return list && list == the_process.unread.load(std::memory_order_acquire);
  }
  /// The sizes that are worth deferring.
  static bool wanted(std::int64_t bytes) noexcept {
    return has_traced_mode && bytes >= std::int64_t{1} << 16;
  }
  sys::mutex making;  ///< held while one is made

  static constexpr fork_order order = fork_order::deferred_init;
  [[gnu::cold]] void before_fork() {
    making.lock();
    planning.lock();
    links.lock();
  }
  [[gnu::cold]] void after_fork(bool) noexcept {
    links.unlock();
    planning.unlock();
    making.unlock();
  }
};

}  // namespace xla::detail
