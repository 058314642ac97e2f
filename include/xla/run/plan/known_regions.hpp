// SPDX-License-Identifier: Apache-2.0
#pragma once

// What xla::runtime has for regions of recorded graphs: loops, such as an optimizer's update
// (cmake/runtime/known_regions.cpp), and sums of columns within tiles (columns.cpp). Other regions
// run tile by tile (run/execute/tile.hpp).

#include <cstdint>

#include "xla/kernel/call.hpp"
#include "xla/kernel/fused/loop_nest.hpp"
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
  region_kernel kernel;  ///< empty: there is none
  std::int8_t input[kernel::micro_op::none];
};

/// The loop for a region of a program whose ops are known.
known_region find_known_region(const program& p, const step& s);

/// Runs a region that sums columns on its inputs and outputs, as of a batch norm's gradients: the
/// bits are those of the maps and of the sums, one after the other.
void run_column_region(const program& p, const step& s, const kernel::loop_nest& l,
                       void* const* operands, std::int64_t ops);

}  // namespace xla::detail
