// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tiles of AMX: whether a process may use them, and their instructions. A thread configures
// them before their first use, and releases them before it waits, because they add 8 KiB to its
// state. This has never run on such a processor: see bfloat16_products(). gemm/amx.hpp uses it.

#include <cstdint>

#include "xla/base/system/process.hpp"

#if XLA_LINUX && defined(__x86_64__)
#include <cpuid.h>
#endif

namespace xla::kernel::detail {

/// The tile configuration of a thread: eight tiles of 16 rows of 64 bytes.
struct alignas(64) tile_shapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(tile_shapes) == 64);

#if XLA_LINUX && defined(__x86_64__)

/// Whether the processor multiplies tiles of bfloat16, and the system saves tile registers at
/// context switches.
template <class = void>
bool machine_has_tiles() {
  unsigned a, b, c, d;
  constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24, osxsave = 1u << 27;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & amx_bf16) || !(d & amx_tile)) return false;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave)) return false;
  constexpr unsigned shapes_and_data = 3u << 17;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & shapes_and_data) == shapes_and_data;
}

/// Asks the system to let this process use tiles; it may be called again. A grant holds for all
/// threads, including running ones, and for children after fork(). The system refuses if a thread
/// has an alternate signal stack that is too small for tiles, such as one of 8 KiB, if it is Linux
/// before 5.16, or if system calls are filtered. After a grant, such a signal stack is refused.
template <class = void>
bool tiles_granted() {
  constexpr long tile_data = 18;
  return sys::request_processor_state(tile_data);
}

/// The instructions in assembly, not as intrinsics: those of g++ 12 name neither the memory that a
/// tile reads nor all of the shapes, and need a flag.
struct amx_instructions {
  static void configure(const tile_shapes& shapes) { asm volatile("ldtilecfg %0" : : "m"(shapes)); }
  static void release() { asm volatile("tilerelease"); }

  template <int Tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
  }
  template <int Tile>
  static void load(const void* from, std::int64_t row_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(row_bytes), "i"(Tile)
                 : "memory");
  }
  template <int Tile>
  static void store(void* to, std::int64_t row_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(row_bytes), "i"(Tile)
                 : "memory");
  }
  /// Adds to 16 x 16 floats the product of 16 rows of 32 bfloat16 and 16 rows of 16 pairs.
  template <int Sum, int Left, int Right>
  static void dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(Left), "i"(Right));
  }
};

#endif

}  // namespace xla::kernel::detail
