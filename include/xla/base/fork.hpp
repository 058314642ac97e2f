// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes fork() safe in a process with threads. An object that has locks registers here: the locks
// are taken before fork() and released on both sides. It is for singletons that are made on first
// use and never destroyed, such as thread pools, memory caches, metrics and the executors of
// recorded graphs.

#include <atomic>
#include <utility>

#include "xla/base/instance.hpp"
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
  static void add(fork_hooks& h) noexcept;
  /// Calls make(where) to make an object, on one thread at a time. fork() waits for it: a child
  /// would wait for ever for an object that a thread of its parent was making.
  [[gnu::cold, gnu::noinline]] static void make_alone(void (*make)(void*), void* where) {
    if (makes) return make(where);
    struct making {
      making() { lock(made), makes = true; }
      ~making() { makes = false, unlock(made); }
    } const alone;
    make(where);
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
  /// that is added then has its turn, before which those behind it are released. So are all while
  /// a thread makes an object, as that may need their locks.
  [[gnu::cold]] static void before() noexcept {
    lock(forking);
    const auto ask = entangled.load();
    const bool abandons = ask && ask();
    lock(listed);
    do
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
    while (made.test_and_set(std::memory_order_acquire) && wait_for_maker());
  }
  static bool wait_for_maker() noexcept {
    release(first, false);
    unlock(listed);
    lock(made);
    unlock(made);
    lock(listed);
    return true;
  }
  [[gnu::cold]] static void after(bool child) noexcept {
    release(first, child);
    unlock(made);
    unlock(listed);
    unlock(forking);
  }
  // Before main(), because a process may fork while another thread adds the first object.
  static inline const bool registered = sys::at_fork(
      before, [] { after(false); }, [] { after(true); });
  static inline constinit std::atomic_flag forking{}, made{}, listed{};
  static inline constinit fork_hooks* first = nullptr;
  static inline constinit thread_local bool makes = false;
};

#if XLA_RUNTIME_HERE
template <class In>
[[gnu::cold, gnu::noinline]] void at_fork<In>::add(fork_hooks& h) noexcept {
  static_cast<void>(registered);
  lock(listed);
  fork_hooks** at = &first;
  while (*at && (*at)->order < h.order) at = &(*at)->next;
  h.next = *at;
  *at = &h;
  unlock(listed);
}
XLA_INSTANCE(void at_fork<void>::add(fork_hooks&) noexcept);
#endif

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

template <class X>
[[gnu::cold, gnu::noinline]] X& make_once(std::atomic<X*>& only) {
  at_fork<>::make_alone(
      [](void* where) {
        auto& only = *static_cast<std::atomic<X*>*>(where);
        if (only.load(std::memory_order_acquire)) return;
        if constexpr (requires { X::order; }) {
          struct held {
            X x;
            fork_hooks hooks{X::order, &x, &fork_functions_of<X>};
          };
          held* const h = new held;
          at_fork<>::add(h->hooks);
          only.store(&h->x, std::memory_order_release);
        } else only.store(new X, std::memory_order_release);
      },
      &only);
  return *only.load(std::memory_order_acquire);
}
/// An object that is made on first use and never destroyed. If it has X::order, fork() calls its
/// fork_functions_of.
template <class X>
X& made_once(std::atomic<X*>& only) {
  X* const x = only.load(std::memory_order_acquire);
  return x ? *x : make_once(only);
}

}  // namespace xla::detail
