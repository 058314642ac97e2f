// SPDX-License-Identifier: Apache-2.0
#pragma once

// The thread pool of a device: its threads claim chunks of one loop at a time. It defines what
// parallel.hpp declares.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "xla/base/dependent.hpp"
#include "xla/base/error.hpp"
#include "xla/base/fork.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/cores.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/kernel/threads/cores.hpp"
#include "xla/kernel/threads/parallel.hpp"

namespace xla {
namespace kernel::detail {

/// The number of hardware threads of the machine, whatever share of it a device has.
template <class = void>
inline int machine_threads() {
  if constexpr (!sys::has_threads) return 1;
  if (const char* text = std::getenv("XLA_NUM_THREADS")) {
    const long n = std::strtol(text, nullptr, 10);
    if (n >= 1 && n <= 4096) return static_cast<int>(n);
  }
  return std::max(1, static_cast<int>(sys::cpu_count()));
}

/// How many threads a loop of this thread's device may use.
template <class = void>
inline int thread_count() {
  if constexpr (!sys::has_threads) return 1;
  std::atomic<int>& own = own_cores->threads;
  if (own.load(std::memory_order_relaxed) == 0) {
    int unknown = 0;
    own.compare_exchange_strong(unknown, machine_threads());
  }
  return own.load(std::memory_order_relaxed);
}

template <class = void>
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  sys::yield();
#endif
}

/// Limits busy waiting: spent() pauses, and returns true after about 100 µs.
class spin_limit {
 public:
  bool spent() noexcept {
    pause();
    return ++rounds_ % 256 == 0 && clock::now() - start_ > std::chrono::microseconds(100);
  }

 private:
  using clock = std::chrono::steady_clock;
  unsigned rounds_ = 0;
  clock::time_point start_ = clock::now();
};

/// An observer that is notified when a pool thread has worked on a loop of the thread that it
/// watches.
struct loop_watch {
  using time = std::chrono::steady_clock::time_point;
  void (*worked)(loop_watch& self, time from, time to) noexcept;
};
/// The observer of this thread's loops on the pool; nullptr: none.
inline constinit thread_local loop_watch* watched_loops = nullptr;

/// Whether this thread works on a chunk of the pool's loop.
inline constinit thread_local bool in_loop = false;

/// Threads that claim chunks of the owner's loop. Each begins with a range of its own, so that
/// loops over the same rows find them in its cache. It then takes chunks from the others' ranges. A
/// call waits for the chunks, not for the threads, so a thread that sleeps or was preempted delays
/// nobody.
template <class In>
class basic_pool {
 public:
  using call_type = void (*)(void* context, std::int64_t chunk) noexcept;

  /// Takes the pool for a loop, unless another loop has it. The caller must `release` it.
  bool try_acquire() noexcept { return !owned_.test_and_set(std::memory_order_acquire); }
  void release() noexcept { owned_.clear(std::memory_order_release); }

  static constexpr auto order = ::xla::detail::fork_order::loops;
  /// fork() waits until no loop runs; the child has none of the threads and starts its own.
  void before_fork() noexcept {
    while (!in_loop && !try_acquire()) sys::yield();
  }
  void after_fork(bool child) noexcept {
    if (in_loop) {
      if (child)
        try_acquire();  // forever: a process that forks in the middle of a loop works alone
      return;
    }
    if (child) {
      ::new (&workers_) threads_type;  // destroying the threads would wait for them
      size_ = 1;
      sleepers_.store(0, std::memory_order_relaxed);
    }
    release();
  }

  /// Owner only: calls call(context, i) for every i in [0, chunks).
  void run(std::uint32_t chunks, call_type call, void* context) {
    resize(thread_count());
    const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
    // Closed while the loop is set up, so that a late thread of the last loop cannot claim from it.
    for (share& s : shares_)
      s.next.store(std::uint64_t{epoch} << 32 | 0xffffffffu, std::memory_order_relaxed);
    call_.store(call, std::memory_order_release);
    context_.store(context, std::memory_order_release);
    total_.store(chunks, std::memory_order_release);
    done_.store(0, std::memory_order_relaxed);
    watch_.store(watched_loops, std::memory_order_relaxed);
    for (std::size_t i = 0; i < shares_.size(); ++i)
      shares_[i].next.store(std::uint64_t{epoch} << 32 | border(chunks, i),
                            std::memory_order_release);
    announce(epoch, chunks - 1);
    work(epoch, 0);
    join(chunks);
  }

  /// Owner only: starts or ends threads until `threads` work, including the caller. If memory or
  /// threads run out, it continues with those that there are.
  void resize(int threads) {
    if (threads != size_) change_threads(threads);
  }

 private:
  [[gnu::cold, gnu::noinline]] void change_threads(int threads) noexcept try {
    shares next(static_cast<std::size_t>(threads));
    stop_.store(true, std::memory_order_relaxed);
    announce(epoch_.load(std::memory_order_relaxed) + 1, static_cast<std::size_t>(workers_.size()));
    for (auto& worker : workers_) worker.join();
    workers_.clear();
    stop_.store(false, std::memory_order_relaxed);
    size_ = threads;
    shares_.swap(next);
    const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed);
    while (workers_.size() + 1 < threads)
      workers_.emplace_back(
          [this, epoch, cores = own_cores, at = static_cast<std::size_t>(workers_.size()) + 1] {
            own_cores = cores;
            if (const auto pin = pin_to_cores.load()) pin(*cores);
            serve(epoch, at);
          });
  } catch (const std::exception&) {
    // The other threads compute the chunks of missing ones.
  }
  void announce(std::uint32_t epoch, std::size_t wanted) {
    // Sequentially consistent with `await`: either the sleeper sees the epoch, or it is counted.
    epoch_.store(epoch);
    const std::size_t asleep = sleepers_.load();
    if (asleep != 0) core_.store(sys::current_core(), std::memory_order_relaxed);
    if (asleep > wanted) {
      for (; wanted != 0; --wanted) sys::wake_one(epoch_);
    } else if (asleep != 0) {
      sys::wake_all(epoch_);
    }
  }

  void join(std::uint32_t chunks) noexcept {
    for (int rounds = 0; done_.load(std::memory_order_acquire) != chunks;) {
      // The thread with the last chunk may need this very core.
      if (++rounds < 2000) pause();
      else sys::yield();
    }
  }

  void serve(std::uint32_t epoch, std::size_t at) {
    for (;;) {
      epoch = await(epoch);
      if (stop_.load(std::memory_order_relaxed)) return;
      work(epoch, at);
    }
  }

  [[gnu::noinline]] std::uint32_t await(std::uint32_t seen) {
    for (spin_limit left; !left.spent();)
      if (const auto epoch = epoch_.load(std::memory_order_acquire); epoch != seen) return epoch;
    sleepers_.fetch_add(1);
    sys::wait_while(epoch_, seen);
    sleepers_.fetch_sub(1);
    // Where other programs run, the system may wake a thread on the core of the one that woke it,
    // again and again. They would never run at the same time.
    if (const int core = core_.load(std::memory_order_relaxed);
        core >= 0 && core == sys::current_core())
      sys::core_set::of_this_thread().leave(core);
    return epoch_.load(std::memory_order_acquire);
  }

  /// The first chunk of the i-th thread's range.
  std::uint32_t border(std::uint32_t chunks, std::size_t i) const noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{chunks} * i / shares_.size());
  }

  void work(std::uint32_t epoch, std::size_t at) noexcept {
    work_done mine;
    for (std::size_t turn = 0; turn < shares_.size(); ++turn, ++at) {
      if (at == shares_.size()) at = 0;
      work_on(epoch, at, mine);
    }
    if (mine.watch) mine.watch->worked(*mine.watch, mine.start, std::chrono::steady_clock::now());
    if (mine.chunks != 0) done_.fetch_add(mine.chunks, std::memory_order_release);
  }
  /// The number of chunks that a thread has computed in a loop. The loop ends when the counts in
  /// done_ add up.
  struct work_done {
    std::uint32_t chunks = 0;
    loop_watch* watch = nullptr;
    loop_watch::time start;
  };
  /// Claims the rest of one range.
  void work_on(std::uint32_t epoch, std::size_t at, work_done& mine) noexcept {
    std::atomic<std::uint64_t>& counter = shares_[at].next;
    auto next = counter.load(std::memory_order_acquire);
    while (next >> 32 == epoch) {
      const auto chunk = static_cast<std::uint32_t>(next);
      if (chunk >= border(total_.load(std::memory_order_acquire), at + 1)) break;
      // The value read here may belong to a later loop; then the exchange fails.
      const auto call = call_.load(std::memory_order_acquire);
      const auto context = context_.load(std::memory_order_acquire);
      if (!counter.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
      if (mine.chunks == 0 && (mine.watch = watch_.load(std::memory_order_relaxed)))
        mine.start = std::chrono::steady_clock::now();
      call(context, chunk);
      ++mine.chunks;
      next = counter.load(std::memory_order_acquire);
    }
  }

  struct alignas(128) share {
    std::atomic<std::uint64_t> next{0};  // epoch << 32 | first unclaimed chunk
  };
  using shares = ::xla::dependent<In, std::vector<share>>;
  shares shares_ = shares(1);
  alignas(128) std::atomic<call_type> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<loop_watch*> watch_{nullptr};
  std::atomic<std::uint32_t> total_{0};
  alignas(128) std::atomic<std::uint32_t> done_{0};
  alignas(128) std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<int> core_{-1};  // of the thread that last woke others
  std::atomic<bool> stop_{false};
  alignas(128) std::atomic_flag owned_;
  using threads_type = ::xla::dependent<In, ::xla::detail::list<sys::thread>>;
  threads_type workers_;
  int size_ = 1;
};
using pool = basic_pool<void>;

// Never freed, because destructors of other static objects may still compute. After its threads are
// joined a pool stays taken, so that every later caller works alone.
template <class = void>
[[gnu::cold, gnu::noinline]] pool& make_pool(core_share& of) {
  static constinit std::atomic<bool> joins{false};
  if (!joins.exchange(true))
    std::atexit([] {
      for (core_share& s : core_shares)
        if (pool* const p = s.pool.load(); p && p->try_acquire()) p->resize(1);
    });
  return ::xla::detail::made_once(of.pool);
}
/// The pool of this thread's device.
template <class = void>
inline pool& own_pool() {
  pool* const p = own_cores->pool.load(std::memory_order_acquire);
  return p ? *p : make_pool(*own_cores);
}

struct loop {
  loop_body body;
  std::atomic<bool> failed{false};
  std::exception_ptr error{};

  template <class = void>
  static void call(void* context, std::int64_t chunk) noexcept {
    auto& self = *static_cast<loop*>(context);
    if (self.failed.load(std::memory_order_relaxed)) return;
    in_loop = true;
    try {
      self.body(chunk);
    } catch (...) {
      if (!self.failed.exchange(true)) self.error = std::current_exception();
    }
    in_loop = false;
  }
};

}  // namespace kernel::detail

template <class>
[[gnu::noinline]] int num_threads() {
  if (kernel::detail::in_loop) return 1;
  return kernel::detail::thread_count();
}
XLA_INSTANCE(int num_threads<void>());

template <class>
void set_num_threads(int n) {
  if (n < 1)
    throw runtime_error{"set_num_threads: needs at least 1 thread, got " + std::to_string(n)};
  kernel::detail::own_cores->threads.store(n, std::memory_order_relaxed);
}
XLA_INSTANCE(void set_num_threads<void>(int));

namespace kernel::detail {

template <class>
void run_loop(std::int64_t chunks, loop_body f) {
  constexpr std::int64_t countable = std::numeric_limits<std::int32_t>::max();
  const bool alone = chunks <= 1 || chunks > countable || num_threads() == 1;
  pool* const threads = alone ? nullptr : &own_pool();
  if (!threads || !threads->try_acquire()) {
    for (std::int64_t i = 0; i < chunks; ++i) f(i);
    return;
  }
  struct releaser {
    pool& taken;
    ~releaser() { taken.release(); }
  };
  loop all{f};
  {
    const releaser guard{*threads};
    threads->run(static_cast<std::uint32_t>(chunks), &loop::call<>, &all);
  }
  if (all.error) std::rethrow_exception(all.error);
}
XLA_INSTANCE(void run_loop<void>(std::int64_t, loop_body));

}  // namespace kernel::detail
}  // namespace xla
