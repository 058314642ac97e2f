// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory in which plans run, shared by the plans of one function. It counts in
// memory_allocated(); tensors have buffers of their own (tensor/buffer.hpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "xla/tensor/buffer.hpp"

namespace xla::detail {

/// Memory for the values of plans. Who holds one that waits may lose it to somebody else.
struct arena {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  arena *older = nullptr, *newer = nullptr;  ///< among those that wait
  bool waits = false;
};

/// The arenas of plans that run one at a time, as those of a function's signatures do: together
/// twice the largest, or as much as was in use at once. A plan that comes again finds the arena
/// that it had before, unless others needed it.
class arena_store {
 public:
  /// Guards the store, and what its users keep with their arenas.
  spin_lock& lock() noexcept { return lock_; }
  /// True when a has still the memory that it had, and what was left there; it is in use again. The
  /// caller holds the lock, as for give().
  bool take_again(arena& a) noexcept {
    if (!a.waits) return false;
    unlink(a);
    use(a.bytes);
    return true;
  }
  /// Memory for so many bytes in one that has none.
  [[gnu::cold]] void take(arena& a, std::int64_t bytes, memory_use why) {
    if (bytes > beyond_all) refuse_memory(static_cast<std::size_t>(bytes), why);
    {
      const std::lock_guard hold(lock_);
      const std::int64_t most = bound(bytes);
      if (total_ + bytes > most && take_over(a, bytes)) return use(a.bytes);
      drop_until(most - bytes);
    }
    a.data = static_cast<std::byte*>(heap_take(static_cast<std::size_t>(bytes), page, why));
    a.bytes = bytes;
    memory_count::instance().add(bytes);
    const std::lock_guard hold(lock_);
    largest_ = std::max(largest_, bytes);
    total_ += bytes;
    use(bytes);
  }
  /// It waits for its next use.
  [[gnu::noinline]] void give(arena& a) noexcept {
    in_use_ -= a.bytes;
    a.waits = true;
    a.older = newest_;
    a.newer = nullptr;
    (newest_ ? newest_->newer : oldest_) = &a;
    newest_ = &a;
  }
  /// Before the end of an arena.
  [[gnu::cold]] void remove(arena& a, bool in_use) noexcept {
    const std::lock_guard hold(lock_);
    if (in_use) give(a);
    if (a.waits) drop(a);
  }
  /// Bytes of all arenas.
  std::int64_t total() const {
    const std::lock_guard hold(lock_);
    return total_;
  }

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::int64_t beyond_all = std::int64_t{1} << 60;
  static constexpr std::int64_t few = std::int64_t{1} << 18;  ///< not worth sharing

  /// What there may be with one more of that size in use.
  std::int64_t bound(std::int64_t bytes) const {
    const std::int64_t pair = 2 * std::max(largest_, bytes);
    return std::max(std::max(pair, std::max(peak_in_use_, in_use_ + bytes)), few);
  }
  void use(std::int64_t bytes) {
    in_use_ += bytes;
    peak_in_use_ = std::max(peak_in_use_, in_use_);
  }
  // The memory of the one that has waited longest, of those that have enough.
  bool take_over(arena& a, std::int64_t bytes) {
    arena* from = oldest_;
    while (from && from->bytes < bytes) from = from->newer;
    if (!from) return false;
    unlink(*from);
    a.data = std::exchange(from->data, nullptr);
    a.bytes = from->bytes;
    return true;
  }
  void unlink(arena& a) noexcept {
    (a.older ? a.older->newer : oldest_) = a.newer;
    (a.newer ? a.newer->older : newest_) = a.older;
    a.waits = false;
  }
  [[gnu::noinline]] void drop(arena& a) noexcept {
    unlink(a);
    if (!a.data) return;
    total_ -= a.bytes;
    memory_count::instance().remove(a.bytes);
    heap_give(std::exchange(a.data, nullptr), page);
  }
  // The oldest go, until all together are so few bytes.
  void drop_until(std::int64_t bytes) noexcept {
    while (oldest_ && total_ > bytes) drop(*oldest_);
  }

  mutable spin_lock lock_;
  arena *oldest_ = nullptr, *newest_ = nullptr;
  std::int64_t total_ = 0, in_use_ = 0, largest_ = 0, peak_in_use_ = 0;
  memory_cache cache_{this,
                      [](void* self) noexcept {
                        arena_store& s = *static_cast<arena_store*>(self);
                        const std::lock_guard hold(s.lock_);
                        s.drop_until(0);
                      },
                      [](void* self, bool holds) noexcept {
                        spin_lock& lock = static_cast<arena_store*>(self)->lock_;
                        holds ? lock.lock() : lock.unlock();
                      }};
};

}  // namespace xla::detail
