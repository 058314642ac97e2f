// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace xla::detail {

template <class>
struct basic_recording;
template <class>
class basic_segment_recorder;

/// What belongs to a thread: its mode, what it records and what it has recorded.
struct thread_context {
  enum class mode : std::int8_t { of_all_threads, traced, eager };
  mode own = mode::of_all_threads;
  bool grad_enabled = true;
  basic_recording<void>* recording = nullptr;       ///< none before the first time
  basic_segment_recorder<void>* segment = nullptr;  ///< the innermost checkpoint()
};
inline constinit thread_local thread_context this_thread;

}  // namespace xla::detail
