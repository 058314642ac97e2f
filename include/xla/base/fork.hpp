// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes fork() safe in a process with threads. An object that has locks registers here: the locks
// are taken before fork() and released on both sides. It is for singletons that are never
// destroyed, such as thread pools, memory caches, metrics and the executors of recorded graphs.

#include <atomic>
#include <utility>

#include "xla/base/system/fork.hpp"

namespace xla::detail {

/// The order in which fork() takes the locks: the holder of one may wait for a later one.
enum class fork_order {
  functions,
  recordings,
  planning,
  passes,
  deferred_init,
  executions,
  loops,
  memory_caches,
  stores
};

/// The functions by which an object survives fork(): they take its locks before and release them on
/// both sides. The child has none of the parent's other threads.
struct fork_functions {
  void (*before)(void* thing);
  void (*after)(void* thing, bool child);
  /// For objects whose holders may wait for calls of other threads, so that fork() cannot wait for
  /// them: what the child does instead.
  void (*abandon)(void* thing) = nullptr;
};

/// An object that fork() locks, for at_fork<>::add().
struct fork_hooks {
  fork_order order;
  void* thing;
  const fork_functions* call;
  fork_hooks* next = nullptr;
  bool held = false;  ///< its locks are, by the thread that forks
};

/// All registered objects. They are never destroyed.
template <class = void>
struct at_fork {
  /// To be called once for each object, before its first use.
  [[gnu::cold, gnu::noinline]] static void add(fork_hooks& h) noexcept {
    lock(listed);
    if (!first)
      sys::at_fork(
          before, [] { after(false); }, [] { after(true); });
    fork_hooks** at = &first;
    while (*at && (*at)->order < h.order) at = &(*at)->next;
    h.next = *at;
    *at = &h;
    unlock(listed);
  }
  /// Reports that threads are waiting for each other now. The child can then only exec or exit.
  static inline constinit std::atomic<bool (*)()> entangled{nullptr};

 private:
  static void lock(std::atomic_flag& f) noexcept {
    while (f.test_and_set(std::memory_order_acquire)) {}
  }
  static void unlock(std::atomic_flag& f) noexcept { f.clear(std::memory_order_release); }
  [[gnu::cold, gnu::noinline]] static void release(fork_hooks* h, bool child) noexcept {
    for (; h; h = h->next)
      if (std::exchange(h->held, false)) h->call->after(h->thing, child);
      else if (child && h->call->abandon) h->call->abandon(h->thing);
  }
  /// Waits for each object's locks without the list's: who holds them may call add(). An object
  /// that is added then has its turn, before which those behind it are released.
  [[gnu::cold]] static void before() noexcept {
    lock(forking);
    const auto ask = entangled.load();
    const bool abandons = ask && ask();
    lock(listed);
    for (fork_hooks* h = first; h;) {
      if (h->held || (abandons && h->call->abandon)) {
        h = h->next;
        continue;
      }
      release(h, false);
      h->held = true;
      unlock(listed);
      h->call->before(h->thing);
      lock(listed);
      h = first;
    }
  }
  [[gnu::cold]] static void after(bool child) noexcept {
    release(first, child);
    unlock(listed);
    unlock(forking);
  }
  static inline constinit std::atomic_flag forking{}, listed{};
  static inline constinit fork_hooks* first = nullptr;
};

/// Those of an X: its before_fork(), after_fork(child), and abandon() if it has one.
template <class X>
inline constexpr fork_functions fork_functions_of{
    [](void* thing) { static_cast<X*>(thing)->before_fork(); },
    [](void* thing, bool child) { static_cast<X*>(thing)->after_fork(child); },
    [] {
      void (*abandon)(void*) = nullptr;
      if constexpr (requires(X& x) { x.abandon(); })
        abandon = [](void* thing) { static_cast<X*>(thing)->abandon(); };
      return abandon;
    }()};

/// An X that is never destroyed; fork() calls its fork_functions_of.
template <class X>
[[gnu::cold]] X& make_held_at_fork(fork_order order) {
  struct held {
    X x;
    fork_hooks hooks;
  };
  held* const h = new held{{}, {order, nullptr, &fork_functions_of<X>}};
  h->hooks.thing = &h->x;
  at_fork<>::add(h->hooks);
  return h->x;
}

}  // namespace xla::detail
