// SPDX-License-Identifier: Apache-2.0
#pragma once

// Public functions about memory: what is allocated and cached, and limits. memory_of.hpp defines
// them.

#include <cstdint>

#include "xla/base/instance.hpp"

namespace xla {

/// Bytes that one call of a function needs, according to its plan.
struct MemoryAnalysis {
  std::int64_t arguments = 0;  ///< tensors, parameters, gradients and states that it reads
  std::int64_t outputs = 0;    ///< results, and new values of writes
  std::int64_t aliased = 0;    ///< of the outputs, those that take the old value's memory
  std::int64_t arena = 0;  ///< other values at the peak, beyond those in the memory of gradients
  std::int64_t reused =
      0;  ///< by how much larger the arena would be if no value reused another's memory
  std::int64_t cached = 0;  ///< packed weights, cached by the weights' buffers
};

/// Bytes that tensors and compiled functions hold now: elements, the arenas of their plans, and
/// convolutions' packed or transformed weights. The latter are made by the second call that reads
/// the same elements, in every mode, unless it writes them or their gradients. They are freed with
/// the elements, or when these are written.
template <class = void>
std::int64_t memory_allocated();
/// The most that memory_allocated() has been, since the start or the last
/// reset_peak_memory_stats().
template <class = void>
std::int64_t max_memory_allocated();
/// Bytes taken from the system for elements and arenas: memory_allocated(), and freed memory that
/// is cached.
template <class = void>
std::int64_t memory_reserved();
/// Returns cached memory to the system: that of freed tensors, and arenas of compiled functions and
/// traced graphs that are not running.
template <class = void>
void empty_cache();
/// The limit on cached bytes of freed tensors; as many as tensors hold may always be cached. The
/// default is a sixteenth of the machine's memory, at least 256 MB, or the number of bytes in the
/// environment variable XLA_CACHE_LIMIT.
template <class = void>
void set_cache_limit(std::int64_t bytes);
/// The limit on the bytes of compiled plans, for each compiled function's signatures and for each
/// device's traced graphs. Beyond it the least recently used plan is evicted, and made again when
/// it is needed; the newest always stays. The default is 256 MB, or the number of bytes in the
/// environment variable XLA_COMPILATION_CACHE_LIMIT. The counter EvictedCompile counts evictions,
/// including those for other numbers of steps of a loop (CompileOptions::max_signatures).
template <class = void>
void set_compilation_cache_limit(std::int64_t bytes);
/// Resets max_memory_allocated() to the current value.
template <class = void>
void reset_peak_memory_stats();

/// Memory of this process, in bytes. All devices share one memory.
struct MemoryInfo {
  std::int64_t bytes_used = 0;       ///< memory_allocated()
  std::int64_t bytes_limit = 0;      ///< the machine's memory; 0 if unknown
  std::int64_t peak_bytes_used = 0;  ///< max_memory_allocated()
};
/// Three of these numbers in one struct, like xm.get_memory_info() of PyTorch/XLA.
template <class = void>
MemoryInfo get_memory_info();

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/plan/memory_of.hpp"
#endif
