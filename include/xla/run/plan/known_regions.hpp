// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops that xla::runtime has for regions of recorded graphs, such as an optimizer's update. Other
// regions run tile by tile (run/execute/tile.hpp). cmake/runtime/updates.cpp makes the loops.

#include <cstdint>

#include "xla/kernel/call.hpp"
#include "xla/transform/micro_op.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

#ifdef XLA_EXTERN_RUNTIME
inline constexpr bool has_known_regions = true;
#else
inline constexpr bool has_known_regions = false;
#endif

/// A loop for a region, which takes the region's inputs in an order of its own.
struct known_region {
  void (*map)(const tile_call&) = nullptr;  ///< nullptr: there is none
  std::int8_t input[kernel::micro_op::none];
};

/// The loop for a map region of a program whose ops are known.
known_region find_known_region(const program& p, const step& s);

}  // namespace xla::detail
