// SPDX-License-Identifier: Apache-2.0
#pragma once

// Questions about the machine's memory, and advice on its pages. heap.hpp allocates.

#include <cstddef>
#include <cstdint>

#include "xla/base/system/platform.hpp"
#include "xla/base/system/windows.hpp"

#if XLA_LINUX
#include <unistd.h>
#if defined(__GLIBC__)  // as its headers declare them, which are long
extern "C" int malloc_trim(std::size_t left) noexcept;
extern "C" int madvise(void* block, std::size_t bytes, int advice) noexcept;
#else
#include <sys/mman.h>
#endif
#endif

namespace xla::sys {

/// The machine's memory, in bytes; 0 where it is not known.
inline std::int64_t physical_memory() noexcept {
#if XLA_LINUX
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
#elif XLA_WINDOWS
  unsigned long long kilobytes = 0;
  return GetPhysicallyInstalledSystemMemory(&kilobytes)
             ? static_cast<std::int64_t>(kilobytes) * 1024
             : 0;
#else
  return 0;
#endif
}

/// The size of a core's L2 cache, in bytes; 0 where it is not known.
inline std::int64_t l2_cache_size() noexcept {
#if XLA_LINUX && defined(__GLIBC__)
  return ::sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  return 0;
#endif
}

/// Asks for large pages in a block of memory. It is only advice.
inline void advise_large_pages([[maybe_unused]] void* block,
                               [[maybe_unused]] std::size_t bytes) noexcept {
#if XLA_LINUX
  // All pages that the block touches: then it shares large ones with neighbours of its kind.
  constexpr std::uintptr_t page = 4096;
  constexpr int large_pages = 14;  // MADV_HUGEPAGE
  const auto at = reinterpret_cast<std::uintptr_t>(block), first = at / page * page;
  ::madvise(reinterpret_cast<void*>(first), at + bytes - first, large_pages);
#endif
}

/// Gives the system what is free between other blocks of the heap.
inline void trim_heap() noexcept {
#if XLA_LINUX && defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace xla::sys
