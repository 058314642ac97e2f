// SPDX-License-Identifier: Apache-2.0
#pragma once

// An executable with its signature and last use, as a compiled function keeps it.
// signature_cache.hpp stores these; loop_signatures.hpp chooses which one leaves.

#include <cstdint>
#include <memory>

#include "xla/run/execute/executable.hpp"

namespace xla::detail {

/// An executable that a compiled function keeps for its next calls with such arguments.
template <class In>
struct basic_kept_executable {
  std::shared_ptr<basic_executable<In>> made;
  std::int64_t bytes;
  std::uint64_t used;  ///< when it was last found after another one
  int hash;
  std::uint64_t family;  ///< of signatures that differ in numbers of steps alone; 0: of no other
};

}  // namespace xla::detail
