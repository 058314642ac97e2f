// SPDX-License-Identifier: Apache-2.0
#pragma once

// get_memory_info(): numbers of memory.hpp in one struct, under the names of PyTorch/XLA.

#include <cstdint>

#include "xla/base/system/memory.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/tensor/heap.hpp"

namespace xla {

/// Memory of this process, in bytes.
struct MemoryInfo {
  std::int64_t bytes_used = 0;       ///< memory_allocated()
  std::int64_t bytes_limit = 0;      ///< the machine's memory; 0 if unknown
  std::int64_t peak_bytes_used = 0;  ///< max_memory_allocated()
};

/// The bytes that tensors and compiled functions hold, have held at most, and the machine's memory,
/// like xm.get_memory_info() of PyTorch/XLA. All devices share one memory.
template <class In = void>
MemoryInfo get_memory_info() {
  return {memory_allocated<In>(), sys::physical_memory(), max_memory_allocated<In>()};
}

}  // namespace xla
