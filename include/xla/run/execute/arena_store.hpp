// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory in which plans run, shared by the plans of one function. It counts in
// memory_allocated(); tensors have buffers of their own (tensor/buffer.hpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "xla/base/system/mutex.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::detail {

/// Memory for the values of plans. A waiting arena may lose its memory to another one.
struct arena {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  arena *older = nullptr, *newer = nullptr;  ///< among the waiting ones
  bool waits = false;
};

/// The arenas of plans that run one at a time, such as those of a function's signatures. Together
/// they take at most twice the largest, or as much as was in use at once. A plan that runs again
/// finds its previous arena, unless others needed it.
class arena_store {
 public:
  /// Guards the store, and what its users keep with their arenas.
  spin_lock& lock() noexcept { return lock_; }
  /// True if `a` still has its previous memory with its content; it is in use again. The caller
  /// holds the lock, as for give().
  bool take_again(arena& a) noexcept {
    if (!a.waits) return false;
    unlink(a);
    use(a.bytes);
    return true;
  }
  /// Memory of this size for an arena that has none.
  [[gnu::cold, gnu::noinline]] void take(arena& a, std::int64_t bytes, memory_use why) {
    if (bytes > beyond_all) refuse_memory(static_cast<std::size_t>(bytes), why);
    {
      const std::lock_guard hold(lock_);
      const std::int64_t most = bound(bytes);
      if (total_ + bytes > most && take_over(a, bytes)) return use(a.bytes);
      drop_until(most - bytes);
    }
    a.data = static_cast<std::byte*>(heap_allocate(static_cast<std::size_t>(bytes), page, why));
    a.bytes = bytes;
    memory_count::instance().add(bytes);
    const std::lock_guard hold(lock_);
    largest_ = std::max(largest_, bytes);
    total_ += bytes;
    use(bytes);
  }
  /// Puts it among the waiting ones.
  [[gnu::noinline]] void give(arena& a) noexcept {
    in_use_ -= a.bytes;
    a.waits = true;
    a.older = newest_;
    a.newer = nullptr;
    (newest_ ? newest_->newer : oldest_) = &a;
    newest_ = &a;
  }
  /// To be called before an arena is destroyed.
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

  /// The limit on all arenas with one more of that size in use.
  std::int64_t bound(std::int64_t bytes) const {
    const std::int64_t pair = 2 * std::max(largest_, bytes);
    return std::max(std::max(pair, std::max(peak_in_use_, in_use_ + bytes)), few);
  }
  void use(std::int64_t bytes) {
    in_use_ += bytes;
    peak_in_use_ = std::max(peak_in_use_, in_use_);
  }
  // Takes the memory of the longest waiting arena that is large enough.
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
    heap_free(std::exchange(a.data, nullptr), page);
  }
  // Frees the longest waiting ones until the total is at most this.
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
