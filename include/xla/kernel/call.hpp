// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface between plans and kernels: plain structs of pointers, sizes and steps. It knows no
// tensor and no graph. Plans and eager mode fill a call; kernel_of<Op, …>::run reads it.

#include <cstdint>
#include <source_location>

#include "xla/graph/attributes.hpp"

namespace xla::kernel {
template <class In>
class basic_epilogue;
using epilogue = basic_epilogue<void>;
}  // namespace xla::kernel

namespace xla::detail {

struct buffer;

/// The algorithm of a kernel for a call, for profiles and printed plans.
struct kernel_choice {
  const char* algorithm = "";
  std::int64_t cached = 0;  ///< bytes of the packed form of an input that it caches, or 0
};

/// One execution of one op: pointers to the elements of result and inputs, their shapes, and the
/// attributes. The caller owns all memory.
struct kernel_call {
  void* out = nullptr;
  void* const* outs =
      nullptr;  ///< of an op with several results; nullptr for those that nothing reads
  const void* const* in = nullptr;
  const shape* out_shape = nullptr;
  const shape* in_shapes = nullptr;
  packed_attributes attr;                   ///< with a known size
  std::source_location at;                  ///< of a check: the source line of the call
  std::uint64_t seed = 0;                   ///< random numbers: the generator's key
  std::uint64_t offset = 0;                 ///< and the first of its counters
  const kernel::epilogue* after = nullptr;  ///< may be notified of finished parts of the result
  /// The buffer of the input that op_info::prepares names. The kernel caches the packed form in it,
  /// for the next call.
  buffer* cache_owner = nullptr;

  template <class Op>
  typename Op::attributes attributes() const {
    return unpack<typename Op::attributes>(attr);
  }
};

/// The inner loop of a fused region: n elements along the last axis. pointers are inputs and then
/// outputs; an input with step 0 is the same element throughout.
struct tile_call {
  void* const* pointers = nullptr;
  const std::int64_t* steps = nullptr;
  std::int64_t n = 0;
};

/// Rows of a row region, n elements each. From one row to the next every pointer moves by its step,
/// in bytes. scratch has room for intermediate rows that later phases read, n elements each,
/// rounded up. Sums over rows (of columns) start from the identity, or from the output's content.
struct row_call {
  void* const* pointers = nullptr;
  const std::int64_t* steps = nullptr;
  std::int64_t rows = 1;
  std::int64_t n = 0;
  void* scratch = nullptr;
  bool begins = true;
};

/// The instantiated kernels of a program's distinct regions.
struct region_kernel {
  void (*map)(const tile_call&) = nullptr;
  void (*row)(const row_call&) = nullptr;
  std::int64_t (*scratch_bytes)(std::int64_t) = nullptr;
  const char* (*name)(int word) = nullptr;  ///< the op of a word of the key; "" for an input
};

}  // namespace xla::detail
