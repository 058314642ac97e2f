// SPDX-License-Identifier: Apache-2.0
#pragma once

// All state of the run time: there is no other in run/. A thread has its mode and its recordings. A
// device has what its threads share. The process has counters and observers. Elsewhere are the mode
// of threads without one of their own (mode.hpp), the process's memory and its counts
// (tensor/buffer.hpp), and a device's cores (kernel/threads/cores.hpp).

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include "xla/base/fork.hpp"
#include "xla/kernel/threads/cores.hpp"
#include "xla/shape/dtype.hpp"

namespace xla::detail {

class arena_store;
class deferred_init;
class generator;
class replica;
class world_maker;
struct fingerprint;
struct running_loop;
struct plan_watch;
struct run_watch;
struct scope_watch;
struct timed_call;
struct impl;
struct cell;
template <class>
class ref;
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
class basic_undo_log;
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
class basic_explainer;
template <class>
struct basic_known_peaks;
template <class>
struct basic_crossing;

// Parts are made on first use and never destroyed, because tensors with static storage are computed
// and released after main.

/// The state of a device. A thread that may wait for another device holds at most the locks of
/// these parts, or that of a compiled function for this device.
struct device_context {
  std::atomic<generator*> random{nullptr};                 ///< the generator of random ops
  std::atomic<basic_op_cache<void>*> ops{nullptr};         ///< the ops that eager mode has seen
  std::atomic<basic_executor<void>*> executions{nullptr};  ///< of traced graphs
  std::atomic<basic_tracer<void>*> graphs{nullptr};        ///< the cache of traced graphs' programs
  std::atomic<arena_store*> arenas{nullptr};               ///< memory for their intermediate values
  /// Its interface to a world; nullptr: it is alone.
  std::atomic<detail::replica*> replica{nullptr};
  std::atomic<bool> used{false};      ///< a thread has worked on it
  std::atomic<bool> launched{false};  ///< a replica works on it

  int number() const noexcept;
  /// Its number in the division of random numbers: the ordinal of the replica that works on it, or
  /// else the device's number.
  int random_stream() const noexcept {
    const int taken = random_stream_.load(std::memory_order_relaxed);
    return taken == 0 ? number() : taken - 1;
  }
  /// ordinal -1: the device's number again.
  void take_random_stream(int ordinal) noexcept {
    random_stream_.store(ordinal + 1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int> random_stream_{0};  // the ordinal + 1; 0: the device's number
};
inline constexpr int max_devices = kernel::detail::max_shares;
inline constinit device_context the_devices[max_devices];
inline device_context& device_of(int number) noexcept { return the_devices[number]; }
inline int device_context::number() const noexcept { return static_cast<int>(this - the_devices); }

/// The state of a thread: its mode, what it records, and the device that it works on.
struct thread_context {
  enum class mode : std::int8_t { of_all_threads, traced, eager, fused };
  mode own = mode::of_all_threads;
  bool grad_enabled = true;
  bool sets_out = false;     ///< ops are being deferred: see deferred_init
  bool notes_lines = false;  ///< ops keep the line that called them: see compare_runs
  bool chose = false;       ///< it has chosen its device: see device_scope
  precision products{};     ///< of ops that it makes: see xla::autocast
  std::uint8_t number = 0;  ///< of its device
  /// How many steps were rolled back for lack of memory.
  unsigned rollbacks = 0;
  /// Set during a backward pass or a recorded body: throws where elements would be computed.
  void (*in_pass)() = nullptr;
  basic_recording<void>* recording = nullptr;       ///< on its device; none before the first time
  basic_recording<void>* recordings = nullptr;      ///< its own on all devices
  basic_segment_recorder<void>* segment = nullptr;  ///< the innermost checkpoint()
  /// The innermost transactional scope: see transaction.hpp.
  basic_undo_log<void>* writes = nullptr;
  const fingerprint* program = nullptr;  ///< the program whose exchanges it runs
  /// The times of the call that a profile records on it.
  timed_call* timed = nullptr;
  scope_watch* scopes = nullptr;  ///< notices what runs in the scopes that are open on it
  running_loop* loop = nullptr;  ///< the innermost loop whose steps it runs
  device_context* device = the_devices;
};
inline constinit thread_local thread_context this_thread;

/// Functions for tensors on another device than the thread's, in run/trace/to_device.hpp. They are
/// a table, so that a program with one device contains no code for it.
struct device_crossing {
  void (*find)(impl& t);  ///< the device of an op whose inputs are not on this thread's
  void (*start)(impl& t, const ref<impl>* others, int other_count);  ///< an op there
  void (*write)(cell& c, impl* value, int device);                   ///< into a cell there
  void (*refuse)(std::string_view function, std::string_view a, int device_of_a, std::string_view b,
                 int device_of_b);
};

/// Called at the end of the program in reverse order of registration: ends threads, writes a
/// profile.
struct exit_hook {
  void (*end)(exit_hook& self);
  exit_hook* next = nullptr;
};

/// The state of the process.
struct process_context {
  std::atomic<basic_metric_store<void>*> metrics{nullptr};
  std::atomic<basic_recordings<void>*> recordings{nullptr};  ///< of all threads
  std::atomic<deferred_init*> unread{nullptr};               ///< of parameters and buffers
  std::atomic<basic_compiled_functions<void>*> functions{nullptr};
  std::atomic<basic_debug_log<void>*> log{nullptr};
  std::atomic<basic_profiler<void>*> profiler{nullptr};
  std::atomic<basic_explainer<void>*> explainer{nullptr};
  std::atomic<basic_known_peaks<void>*> peaks{nullptr};  ///< of the machine
  std::once_flag profile;                                ///< that the environment asks for
  std::atomic<world_maker*> worlds{nullptr};             ///< of more than threads
  /// Runs plans in place of the executables, for a profile.
  std::atomic<plan_watch*> watch{nullptr};
  std::atomic<scope_watch*> scopes{nullptr};      ///< notices scopes, for a profile
  std::atomic<run_watch*> runs{nullptr};          ///< notices ops and graphs, for xla::explain()
  std::atomic<void (*)()> before_plans{nullptr};  ///< called before plans are made
  std::mutex making;                              ///< held while a part is made
  /// Held while the leaves of a graph are numbered.
  std::mutex collecting;
  std::mutex ending;  ///< held while a hook is added to:
  exit_hook* at_exit = nullptr;
  std::atomic<int> devices{0};  ///< how many there are; 0: nobody has asked yet
  std::atomic<const device_crossing*> crossing{nullptr};  ///< once there are several
  std::atomic<std::uint64_t> seed{0};  ///< that random numbers of all devices begin with
  alignas(64) std::atomic<std::uint64_t> tensors{0};  ///< that there were: their numbers
  std::atomic<std::uint64_t> executables{0};          ///< likewise
  std::atomic<std::uint64_t> cells{0};                ///< likewise
};
inline constinit process_context the_process;

template <class X>
[[gnu::cold, gnu::noinline]] X& make_part(std::atomic<X*>& part) {
  const std::lock_guard hold(the_process.making);
  X* x = part.load(std::memory_order_acquire);
  if (x) return *x;
  if constexpr (requires { X::order; }) x = &make_held_at_fork<X>(X::order);
  else x = new X;
  part.store(x, std::memory_order_release);
  return *x;
}
/// A part of a context, made on first use. The constructor of a part must not use another part.
template <class X>
X& part_of(std::atomic<X*>& part) {
  X* const x = part.load(std::memory_order_acquire);
  return x ? *x : make_part(part);
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

/// The innermost loop whose steps this thread runs one by one. It marks which tensors the loop gave
/// to the step: those made before the first step, and before this one.
struct running_loop {
  const impl* before = nullptr;
  const impl* latest = nullptr;
  running_loop* outer;

  running_loop() : outer(std::exchange(this_thread.loop, this)) {}
  ~running_loop() { this_thread.loop = outer; }
  running_loop(const running_loop&) = delete;
};

class backend;

/// The backends that a process has, and the one that runs its programs.
struct backend_state {
  std::atomic<backend*> linked{nullptr};        ///< the last; each knows the one before it
  std::atomic<const backend*> chosen{nullptr};  ///< nullptr: none, plans run
  const backend* usual = nullptr;               ///< to begin with, where XLA_BACKEND names none
  std::atomic<bool> settled{false};  ///< somebody has chosen, or the environment was asked
};
inline constinit backend_state backends;

}  // namespace xla::detail
