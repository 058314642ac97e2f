// SPDX-License-Identifier: Apache-2.0
#pragma once

// Public functions about memory: what is allocated and cached, and limits. memory_of.hpp defines
// them.

#include <cstdint>

#include "xla/base/instance.hpp"

namespace xla {

/// Bytes that one call of a function needs, as its plan says.
struct MemoryAnalysis {
  std::int64_t arguments = 0;  ///< tensors, parameters, gradients and states that it reads
  std::int64_t outputs = 0;    ///< results, and new values of what it writes
  std::int64_t aliased = 0;    ///< of the outputs, those that take the place of the old value
  std::int64_t arena = 0;      ///< other values at the peak that gradients' memory cannot take
  std::int64_t reused = 0;     ///< what the arena would take more if no value took another's place
  std::int64_t cached = 0;     ///< packed weights, which the weights' buffers cache
};

/// Bytes that tensors and compiled functions hold now: elements, the arenas of their plans, and
/// convolutions' weights as kernels read them, packed or transformed. These are made by the second
/// call that reads the same elements, in every mode, unless it writes them or their gradients; they
/// are let go of with the elements, or when these are written.
template <class = void>
std::int64_t memory_allocated();
/// The most that memory_allocated() has been, since the start or the last
/// reset_peak_memory_stats().
template <class = void>
std::int64_t max_memory_allocated();
/// Bytes taken from the system for elements and arenas: those of memory_allocated(), and those of
/// freed tensors that wait for the next ones.
template <class = void>
std::int64_t memory_reserved();
/// Gives back to the system what waits for its next use: memory of freed tensors, and arenas of
/// compiled functions and traced graphs that are not running.
template <class = void>
void empty_cache();
/// How many bytes of freed tensors may wait for the next ones; as many as tensors hold may always.
/// A sixteenth of the machine's memory, at least 256 MB, unless the environment variable
/// XLA_CACHE_LIMIT says another number of bytes.
template <class = void>
void set_cache_limit(std::int64_t bytes);
/// How many bytes compiled plans may take: those of each compiled function's signatures, and those
/// of each device's traced graphs. Beyond that the one that was used longest ago is forgotten, and
/// made again when it is needed; the newest always stays. 256 MB, unless the environment variable
/// XLA_COMPILATION_CACHE_LIMIT says another number of bytes. The counter EvictedCompile says how
/// many were forgotten, also for other numbers of steps of a loop (CompileOptions::max_signatures).
template <class = void>
void set_compilation_cache_limit(std::int64_t bytes);
/// From here on max_memory_allocated() starts at what is allocated now.
template <class = void>
void reset_peak_memory_stats();

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/plan/memory_of.hpp"
#endif
