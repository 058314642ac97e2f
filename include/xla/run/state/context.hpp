// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the state of running stands. A thread has its mode and what it records; a device all that
// its threads share. Of the whole process are, and stay: the mode of threads without one of their
// own (mode.hpp), the recordings of threads that have ended (recording.hpp), memory and its counts
// (tensor/buffer.hpp), metrics (metric_store.hpp), the debug log (debug.hpp), who watches plans
// (executable.hpp), and, as there is one device, the threads that kernels share (kernel/pool.hpp).

#include <atomic>
#include <cstdint>
#include <mutex>

#include "xla/base/fork.hpp"

namespace xla::detail {

class generator;
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

/// What belongs to a device. Each is made when it is first used, and never destroyed: tensors with
/// static storage are computed and let go of after main.
struct device_context {
  std::atomic<generator*> random{nullptr};                 ///< numbers of random ops
  std::atomic<basic_op_cache<void>*> ops{nullptr};         ///< seen in eager mode
  std::atomic<basic_executor<void>*> executions{nullptr};  ///< of traced graphs
  std::atomic<basic_tracer<void>*> graphs{nullptr};        ///< that were planned
};
inline constinit device_context the_device;

/// What belongs to a thread: its mode, what it records, and where that will run.
struct thread_context {
  enum class mode : std::int8_t { of_all_threads, traced, eager };
  mode own = mode::of_all_threads;
  bool grad_enabled = true;
  unsigned taken_back = 0;                          ///< steps that memory has failed
  basic_recording<void>* recording = nullptr;       ///< none before the first time
  basic_segment_recorder<void>* segment = nullptr;  ///< the innermost checkpoint()
  basic_write_log<void>* writes = nullptr;          ///< the innermost all_or_nothing()
  device_context* device = &the_device;
};
inline constinit thread_local thread_context this_thread;

template <class X>
[[gnu::cold, gnu::noinline]] X& make_part(std::atomic<X*>& place) {
  static constinit std::mutex making;
  const std::lock_guard hold(making);
  X* x = place.load(std::memory_order_acquire);
  if (!x) place.store(x = &held_at_fork(*new X, X::order), std::memory_order_release);
  return *x;
}
/// A part of a device.
template <class X>
X& part_of_device(std::atomic<X*>& place) {
  X* const x = place.load(std::memory_order_acquire);
  return x ? *x : make_part(place);
}

}  // namespace xla::detail
