// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the state of running stands, and nowhere else in run/. A thread has its mode and what it
// records; a device all that its threads share; the process what is counted and watched. The mode
// of threads without one of their own is in mode.hpp. Below, memory and its counts are the
// process's (tensor/buffer.hpp), and a device's cores stand by its number in kernel/threads/cores.hpp.

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
class first_values;
class generator;
class replica;
class world_maker;
struct fingerprint;
struct running_loop;
struct plan_watch;
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
template <class>
struct basic_crossing;

// Parts are made when they are first used, and never destroyed: tensors with static storage are
// computed and let go of after main.

/// What belongs to a device. A lock that somebody holds who may wait for another device is one of
/// these parts', or a compiled function's for this device.
struct device_context {
  std::atomic<generator*> random{nullptr};                 ///< numbers of random ops
  std::atomic<basic_op_cache<void>*> ops{nullptr};         ///< seen in eager mode
  std::atomic<basic_executor<void>*> executions{nullptr};  ///< of traced graphs
  std::atomic<basic_tracer<void>*> graphs{nullptr};        ///< that were planned
  std::atomic<arena_store*> arenas{nullptr};               ///< of all those
  std::atomic<detail::replica*> replica{nullptr};  ///< its end of a world; none: it is alone
  std::atomic<bool> used{false};                   ///< by a thread that worked on it
  std::atomic<bool> launched{false};               ///< a replica works on it

  int number() const noexcept;
  /// Its place among those that draw random numbers: what the replica said that works on it, or its
  /// number.
  int place() const noexcept {
    const int taken = place_.load(std::memory_order_relaxed);
    return taken == 0 ? number() : taken - 1;
  }
  /// -1: its number again.
  void take_place(int ordinal) noexcept { place_.store(ordinal + 1, std::memory_order_relaxed); }

 private:
  std::atomic<int> place_{0};  // and 1; 0: its number
};
inline constexpr int most_devices = kernel::detail::most_shares;
inline constinit device_context the_devices[most_devices];
inline device_context& device_of(int number) noexcept { return the_devices[number]; }
inline int device_context::number() const noexcept { return static_cast<int>(this - the_devices); }

/// What belongs to a thread: its mode, what it records, and where that will run.
struct thread_context {
  enum class mode : std::int8_t { of_all_threads, traced, eager, fused };
  mode own = mode::of_all_threads;
  bool grad_enabled = true;
  bool sets_out = false;                            ///< ops wait to be read: see first_values
  bool chose = false;                               ///< its device: see device_scope
  precision products{};                             ///< of ops that it makes: see xla::autocast
  std::uint8_t number = 0;                          ///< of its device
  unsigned taken_back = 0;                          ///< steps that memory has failed
  void (*in_pass)() = nullptr;                      ///< or a recorded body: refuses to compute
  basic_recording<void>* recording = nullptr;       ///< on its device; none before the first time
  basic_recording<void>* recordings = nullptr;      ///< its own on all devices
  basic_segment_recorder<void>* segment = nullptr;  ///< the innermost checkpoint()
  basic_write_log<void>* writes = nullptr;          ///< the innermost all_or_nothing()
  const fingerprint* program = nullptr;             ///< whose exchanges it runs
  timed_call* timed = nullptr;                      ///< what a profile times of it
  running_loop* loop = nullptr;                     ///< the innermost whose steps it runs
  device_context* device = the_devices;
};
inline constinit thread_local thread_context this_thread;

/// What is done where a thread meets tensors of another device than its own; a program that has one
/// device has no code for it. run/trace/to_device.hpp has it.
struct device_crossing {
  void (*find)(impl& t);  ///< the device of an op whose inputs are not on this thread's
  void (*start)(impl& t, const ref<impl>* others, int other_count);  ///< an op there
  void (*write)(cell& c, impl* value, int device);                   ///< into a cell there
  void (*refuse)(std::string_view function, std::string_view a, int device_of_a, std::string_view b,
                 int device_of_b);
};

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
  std::mutex collecting;                                 ///< and to number the leaves of a graph
  std::mutex ending;                                     ///< and to add to:
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

/// A loop whose steps this thread runs one after the other, while it lives: what has made the
/// tensors that it gives to the step, before the first one and behind the one before.
struct running_loop {
  const impl* before = nullptr;
  const impl* latest = nullptr;
  running_loop* outer;

  running_loop() : outer(std::exchange(this_thread.loop, this)) {}
  ~running_loop() { this_thread.loop = outer; }
  running_loop(const running_loop&) = delete;
};

}  // namespace xla::detail
