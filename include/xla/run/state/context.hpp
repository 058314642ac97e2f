// SPDX-License-Identifier: Apache-2.0
#pragma once

// All state of the run time; run/ has no other. A thread has its mode and its recordings, a device
// the state that its threads share, the process its counters and observers. Outside of run/ are the
// default mode of threads (mode.hpp), the process's memory and its counts (tensor/buffer.hpp), and
// a device's cores (kernel/threads/cores.hpp).

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "xla/base/fork.hpp"
#include "xla/base/system/mutex.hpp"
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
template <class>
class basic_cores;

// Parts are made_once() and never destroyed, because tensors with static storage are computed and
// released after main.

/// The state of a device. A thread that may wait for another device holds at most the locks of
/// these parts, or that of a compiled function for this device.
struct device_context {
  std::atomic<generator*> random{nullptr};                 ///< the generator of random ops
  std::atomic<basic_op_cache<void>*> ops{nullptr};         ///< the ops that eager mode has executed
  std::atomic<basic_executor<void>*> executions{nullptr};  ///< of traced graphs
  std::atomic<basic_tracer<void>*> graphs{nullptr};        ///< the cache of traced graphs' programs
  std::atomic<arena_store*> arenas{nullptr};               ///< memory for their intermediate values
  /// Its interface to a world; nullptr if it is alone.
  std::atomic<detail::replica*> replica{nullptr};
  std::atomic<bool> used{false};      ///< a thread has worked on it
  std::atomic<bool> launched{false};  ///< a replica works on it

  int number() const noexcept;
  /// Its number in the division of random numbers: the ordinal of its replica, or else the device's
  /// number.
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

/// The state of a thread: its mode, its recordings, and its device.
struct thread_context {
  enum class mode : std::int8_t { of_all_threads, traced, eager, fused };
  mode own = mode::of_all_threads;
  bool grad_enabled = true;
  bool sets_out = false;     ///< ops are deferred: see deferred_init
  bool checkpoints = false;  ///< a loop body called checkpoint(): see body_scope
  bool notes_lines = false;  ///< ops record the line of their call: see compare_runs
  bool chose = false;        ///< it has chosen its device: see device_scope
  precision products{};      ///< the precision of its products: see xla::autocast
  std::uint8_t number = 0;   ///< of its device
  /// The number of steps that were rolled back for lack of memory.
  unsigned rollbacks = 0;
  /// Set during a backward pass or a recorded body: throws instead of computing elements.
  void (*in_pass)() = nullptr;
  basic_recording<void>* recording = nullptr;       ///< on its device; null before the first use
  basic_recording<void>* recordings = nullptr;      ///< its own on all devices
  basic_segment_recorder<void>* segment = nullptr;  ///< the innermost checkpoint()
  /// The innermost transactional scope: see transaction.hpp.
  basic_undo_log<void>* writes = nullptr;
  const fingerprint* program = nullptr;  ///< the program whose exchanges it runs
  /// The times of the call that a profile records on this thread.
  timed_call* timed = nullptr;
  scope_watch* scopes = nullptr;  ///< observes what runs in the scopes that are open on it
  running_loop* loop = nullptr;   ///< the innermost loop whose steps it runs
  device_context* device = the_devices;
};
inline constinit thread_local thread_context this_thread;

/// Functions for tensors on a device other than the thread's, in run/trace/to_device.hpp. They are
/// in a table, so that a program with one device contains no code for it.
struct device_crossing {
  void (*find)(impl& t);  ///< the device of an op whose inputs are not on this thread's
  void (*start)(impl& t, const ref<impl>* others, int other_count);  ///< an op on that device
  void (*write)(cell& c, impl* value, int device);  ///< a write to a cell on that device
  void (*refuse)(std::string_view function, std::string_view a, int device_of_a, std::string_view b,
                 int device_of_b);
};

/// Called at the end of the program in reverse order of registration, for instance to end threads
/// or write a profile.
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
  std::atomic<basic_cores<void>*> cores{nullptr};        ///< and which device has which
  sys::once_flag profile;                                ///< which the environment asks for
  std::atomic<world_maker*> worlds{nullptr};             ///< of processes beyond this one's threads
  /// Runs plans in place of the executables, for a profile.
  std::atomic<plan_watch*> watch{nullptr};
  std::atomic<scope_watch*> scopes{nullptr};      ///< observes scopes, for a profile
  std::atomic<run_watch*> runs{nullptr};          ///< observes ops and graphs, for xla::explain()
  std::atomic<void (*)()> before_plans{nullptr};  ///< called before plans are made
  /// Held while the leaves of a graph are numbered.
  sys::mutex collecting;
  sys::mutex ending;  ///< held while a hook is added to:
  exit_hook* at_exit = nullptr;
  std::atomic<int> devices{0};  ///< the number of devices; 0: not yet determined
  std::atomic<const device_crossing*> crossing{nullptr};  ///< once there are several
  std::atomic<std::uint64_t> seed{0};  ///< the seed of the random numbers of all devices
  alignas(64) std::atomic<std::uint64_t> tensors{0};  ///< that there were: their numbers
  std::atomic<std::uint64_t> executables{0};          ///< likewise
  std::atomic<std::uint64_t> cells{0};                ///< likewise
};
inline constinit process_context the_process;

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

/// Notes whether the body of a loop or branch calls checkpoint() while a thread runs or records it.
struct body_scope {
  bool outer = std::exchange(this_thread.checkpoints, false);

  body_scope() = default;
  ~body_scope() { this_thread.checkpoints = outer; }
  body_scope(const body_scope&) = delete;
};

/// The innermost loop whose steps this thread runs one by one. It identifies the tensors that the
/// loop passed to the step: those made before the first step, and before this one.
struct running_loop : body_scope {
  const impl* before = nullptr;
  const impl* latest = nullptr;
  running_loop* outer;

  running_loop() : outer(std::exchange(this_thread.loop, this)) {}
  ~running_loop() { this_thread.loop = outer; }
  running_loop(const running_loop&) = delete;
};

class backend;

/// The backends of a process, and the current one.
struct backend_state {
  std::atomic<backend*> linked{nullptr};        ///< the last; each points to the previous one
  std::atomic<const backend*> chosen{nullptr};  ///< nullptr: native plans run
  const backend* usual = nullptr;               ///< the initial one, if XLA_BACKEND names none
  std::atomic<bool> settled{false};             ///< it was chosen, or the environment was read
};
inline constinit backend_state backends;

}  // namespace xla::detail
