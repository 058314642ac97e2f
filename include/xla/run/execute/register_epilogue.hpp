// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a convolution and the maps on its result in one step, while sums are in registers. Programs
// of headers alone have no such kernels, to stay small: xla::runtime defines this in
// register_epilogue.cpp, and epilogue.hpp calls it.

#include "xla/run/execute/planned.hpp"

namespace xla::detail {

/// Runs step `made` on these operands, whose shapes follow one another, and the step of maps on
/// its result. False if these maps are no chain that kernels compute in registers; then nothing
/// has run.
bool run_in_registers(const plan& p, const ready_step& made, void* const* pointers,
                      const shape* shapes, buffer* cache_owner, const ready_step& maps,
                      void* const* of_maps);

}  // namespace xla::detail
