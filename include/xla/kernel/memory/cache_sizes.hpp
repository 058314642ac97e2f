// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cache sizes of a core. Kernels ask for them before they prefetch; they change no bit of a
// result.

#include <cstdint>

#include "xla/base/system/memory.hpp"

namespace xla::kernel {
namespace detail {

template <class = void>
[[gnu::cold]] std::int64_t find_near_memory() {
  std::int64_t l2 = sys::l2_cache_size();
  if (l2 <= 0) l2 = 1 << 20;
#if defined(__x86_64__)
  // The size of L3 that the system reports is that of all cores, on some virtual machines of the
  // whole chip.
  if (__builtin_cpu_is("amd")) return 10 * l2;
#endif
  return l2;
}

}  // namespace detail

/// The size in bytes up to which the hardware prefetcher keeps up with sequential reads. Kernels
/// prefetch from larger data; for smaller data prefetching only costs time. It is the size of the
/// L2 cache; on AMD processors, where eight cores share an L3 cache, a part of that in addition.
template <class = void>
inline const std::int64_t near_memory = detail::find_near_memory();

}  // namespace xla::kernel
