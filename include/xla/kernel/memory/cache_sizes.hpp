// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cache sizes of a core. Kernels choose by them how they read; they change no bit of a result.

#include <cstdint>

#include "xla/base/system/memory.hpp"

namespace xla::kernel {
namespace detail {

template <class = void>
[[gnu::cold]] std::int64_t l2_size() {
  const std::int64_t l2 = sys::l2_cache_size();
  return l2 > 0 ? l2 : 1 << 20;
}

template <class = void>
[[gnu::cold]] std::int64_t find_near_memory() {
  const std::int64_t l2 = l2_size();
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

/// The size in bytes up to which a core finds data in its L2 cache that it reads again and again:
/// three quarters of it, as there is other data.
template <class = void>
inline const std::int64_t own_memory = detail::l2_size() / 4 * 3;

}  // namespace xla::kernel
