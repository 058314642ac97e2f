// SPDX-License-Identifier: Apache-2.0
#pragma once

// Allocates memory from the system; if there is none, caches return theirs first. Buffers, arenas
// and scratch memory allocate here; other objects use new.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/fork.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/system/memory.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/shape/shape.hpp"

#if XLA_RUNTIME_HERE
#endif

namespace xla::detail {

/// Lets another thread run. It is out of line so that a program with the runtime does not compile
/// `<thread>`, a fiftieth of its headers.
template <class = void>
void yield() noexcept;

#if XLA_RUNTIME_HERE
template <class>
void yield() noexcept {
  sys::yield();
}
#endif
XLA_INSTANCE(void yield<void>() noexcept);

/// A lock for a few instructions; usable with std::lock_guard.
class spin_lock {
 public:
  void lock() noexcept {
    if (flag_.test_and_set(std::memory_order_acquire)) wait();
  }
  void unlock() noexcept { flag_.clear(std::memory_order_release); }

 private:
  [[gnu::cold, gnu::noinline]] void wait() noexcept {
    do yield();
    while (flag_.test_and_set(std::memory_order_acquire));
  }
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

/// The last member of a class that caches unused memory and can return it. Other threads may call
/// it during its lifetime, so all that it guards must outlive it.
class memory_cache {
 public:
  using release_function = void(void* owner) noexcept;
  /// Takes the owner's lock before the process forks, or releases it.
  using lock_function = void(void* owner, bool holds) noexcept;

  [[gnu::cold, gnu::noinline]] memory_cache(void* owner, release_function* f,
                                            lock_function* h = nullptr)
      : owner_(owner), release_(f), hold_(h) {
    list& all = memory_caches();
    const std::lock_guard hold(all.lock);
    next_ = all.first;
    if (next_) next_->previous_ = this;
    all.first = this;
  }
  memory_cache(const memory_cache&) = delete;
  memory_cache& operator=(const memory_cache&) = delete;
  [[gnu::cold, gnu::noinline]] ~memory_cache() {
    list& all = memory_caches();
    const std::lock_guard hold(all.lock);
    (previous_ ? previous_->next_ : all.first) = next_;
    if (next_) next_->previous_ = previous_;
  }

  /// Returns all cached memory to the system.
  static void release_all() noexcept {
    list& all = memory_caches();
    const std::lock_guard hold(all.lock);
    for (memory_cache* k = all.first; k; k = k->next_) k->release_(k->owner_);
  }

 private:
  struct list {
    sys::mutex lock;
    memory_cache* first = nullptr;

    static constexpr fork_order order = fork_order::memory_caches;
    void before_fork() {
      lock.lock();
      lock_all(true);
    }
    void after_fork(bool) noexcept {
      lock_all(false);
      lock.unlock();
    }
    void lock_all(bool holds) noexcept {
      for (memory_cache* k = first; k; k = k->next_)
        if (k->hold_) k->hold_(k->owner_, holds);
    }
  };
  static list& memory_caches() {
    // Never destroyed, because some memory_caches have static storage.
    static constinit std::atomic<list*> all{nullptr};
    return made_once(all);
  }
  void* owner_;
  release_function* release_;
  lock_function* hold_;
  memory_cache *next_ = nullptr, *previous_ = nullptr;
};

/// The purpose of an allocation, for the error sentence.
struct memory_use {
  std::string_view function = "xla";
  const shape* dims = nullptr;
  bool of_all = false;  ///< for the arena of a step, whose largest tensor this is
};

template <class = void>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_memory(std::size_t bytes, memory_use use) {
  text t;
  t << use.function << ": out of memory: ";
  if (use.of_all) t << "the values of a step, the largest of them ";
  if (use.dims) t << "a tensor of shape " << *use.dims << (use.of_all ? ", take " : " takes ");
  t << static_cast<std::int64_t>(bytes) << " bytes, which the system does not have";
  throw out_of_memory(t);
}
XLA_INSTANCE(void refuse_memory<void>(std::size_t, memory_use));

/// From half a large page on, memory has large pages if the system has them: strided accesses, such
/// as to columns of a matrix, then miss fewer address translations.
inline constexpr std::size_t large_page = std::size_t{1} << 21;

/// Allocates from the heap. If there is no memory, caches are emptied first. Callers hold no lock
/// of a memory_cache.
template <class = void>
[[gnu::noinline]] void* heap_allocate(std::size_t bytes, std::size_t alignment,
                                      memory_use use = {}) {
  for (int tries = 0; tries < 2; ++tries) {
    if (void* p = ::operator new(bytes, std::align_val_t(alignment), std::nothrow)) {
      if (bytes >= large_page / 2) sys::advise_large_pages(p, bytes);
      return p;
    }
    if (tries == 0) memory_cache::release_all();
  }
  refuse_memory(bytes, use);
}
XLA_INSTANCE(void* heap_allocate<void>(std::size_t, std::size_t, memory_use));

inline void heap_free(void* p, std::size_t alignment) noexcept {
  ::operator delete(p, std::align_val_t(alignment));
}

}  // namespace xla::detail
