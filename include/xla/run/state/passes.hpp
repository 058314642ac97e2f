// SPDX-License-Identifier: Apache-2.0
#pragma once

// set_passes(): leaves passes out of traced graphs, and passes over steps out of all plans, to find
// a fault. A compiled function leaves its own out by tags::without (transform/passes.hpp).

#include <string_view>

#include "xla/base/instance.hpp"

namespace xla {

/// Leaves passes out of graphs that are traced from now on, "-share,-fuse", or none, "": to find
/// out which one a fault or a gain comes from. Of compiled functions it reaches those that arrange
/// the steps for given sizes, "-slices,-side_by_side", at sizes that are new; for the others see
/// xla::tags::without. XLA_PASSES in the environment does the same from the start. Throws
/// runtime_error with the names of all passes about one that is not there.
template <class = void>
void set_passes(std::string_view list);

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/state/selected_passes.hpp"
#endif
