// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the state of running stands, and nowhere else in run/. A thread has its mode and what it
// records; a device all that its threads share; the process what is counted and watched. The mode
// of threads without one of their own is in mode.hpp. Below, memory and its counts are the
// process's (tensor/buffer.hpp), and so, as there is one device, are the threads that kernels share
// (kernel/pool.hpp).

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "xla/base/fork.hpp"

namespace xla::detail {

class arena_store;
class first_values;
class generator;
class replica;
class world_maker;
struct plan_watch;
template <class>
class basic_op_cache;
template <class>
class basic_executor;
template <class>
class basic_tracer;
template <class>
struct basic_recording;
template <class>
class basic_segment_recorder;
template <class>
class basic_write_log;
template <class>
struct basic_metric_store;
template <class>
class basic_recordings;
template <class>
class basic_compiled_functions;
template <class>
class basic_debug_log;
template <class>
class basic_profiler;
template <class>
struct basic_known_peaks;

// Parts are made when they are first used, and never destroyed: tensors with static storage are
// computed and let go of after main.

/// What belongs to a device.
struct device_context {
  std::atomic<generator*> random{nullptr};                 ///< numbers of random ops
  std::atomic<basic_op_cache<void>*> ops{nullptr};         ///< seen in eager mode
  std::atomic<basic_executor<void>*> executions{nullptr};  ///< of traced graphs
  std::atomic<basic_tracer<void>*> graphs{nullptr};        ///< that were planned
  std::atomic<arena_store*> arenas{nullptr};               ///< of all those
  std::atomic<detail::replica*> replica{nullptr};  ///< its end of a world; none: it is alone
};
inline constinit device_context the_device;

/// What belongs to a thread: its mode, what it records, and where that will run.
struct thread_context {
  enum class mode : std::int8_t { of_all_threads, traced, eager };
  mode own = mode::of_all_threads;
  bool grad_enabled = true;
  bool sets_out = false;                            ///< ops wait to be read: see first_values
  unsigned taken_back = 0;                          ///< steps that memory has failed
  basic_recording<void>* recording = nullptr;       ///< none before the first time
  basic_segment_recorder<void>* segment = nullptr;  ///< the innermost checkpoint()
  basic_write_log<void>* writes = nullptr;          ///< the innermost all_or_nothing()
  device_context* device = &the_device;
};
inline constinit thread_local thread_context this_thread;

/// What ends with the program, the last first: threads, a profile of all of it.
struct exit_hook {
  void (*end)(exit_hook& self);
  exit_hook* next = nullptr;
};

/// What belongs to the process.
struct process_context {
  std::atomic<basic_metric_store<void>*> metrics{nullptr};
  std::atomic<basic_recordings<void>*> recordings{nullptr};  ///< of all threads
  std::atomic<first_values*> unread{nullptr};                ///< of parameters and buffers
  std::atomic<basic_compiled_functions<void>*> functions{nullptr};
  std::atomic<basic_debug_log<void>*> log{nullptr};
  std::atomic<basic_profiler<void>*> profiler{nullptr};
  std::atomic<basic_known_peaks<void>*> peaks{nullptr};  ///< of the machine
  std::once_flag profile;                                ///< that the environment asks for
  std::atomic<world_maker*> worlds{nullptr};             ///< of more than threads
  std::atomic<plan_watch*> watch{nullptr};               ///< runs plans in the executables' stead
  std::atomic<void (*)()> before_plans{nullptr};         ///< called before plans are made
  std::mutex making;                                     ///< held to make a part
  std::mutex ending;                                     ///< and to add to:
  exit_hook* at_exit = nullptr;
  alignas(64) std::atomic<std::uint64_t> tensors{0};  ///< that there were: their numbers
  std::atomic<std::uint64_t> executables{0};          ///< likewise
};
inline constinit process_context the_process;

template <class X>
[[gnu::cold, gnu::noinline]] X& make_part(std::atomic<X*>& place) {
  const std::lock_guard hold(the_process.making);
  X* x = place.load(std::memory_order_acquire);
  if (x) return *x;
  if constexpr (requires { X::order; }) x = &make_held_at_fork<X>(X::order);
  else x = new X;
  place.store(x, std::memory_order_release);
  return *x;
}
/// A part of a context. What makes one needs no other.
template <class X>
X& part_of(std::atomic<X*>& place) {
  X* const x = place.load(std::memory_order_acquire);
  return x ? *x : make_part(place);
}

template <class = void>
[[gnu::cold]] void end_at_exit(exit_hook& h) {
  const std::lock_guard hold(the_process.ending);
  if (!the_process.at_exit)
    std::atexit([] {
      for (exit_hook *h = the_process.at_exit, *next; h; h = next) {
        next = h->next;  // h may be gone afterwards
        h->end(*h);
      }
    });
  h.next = std::exchange(the_process.at_exit, &h);
}

}  // namespace xla::detail
