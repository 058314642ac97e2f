// SPDX-License-Identifier: Apache-2.0
#pragma once

// set_passes(): disables passes of traced graphs, and passes over the steps of all plans, for
// debugging. A compiled function disables its own by tags::without (transform/passes.hpp).

#include <string_view>

#include "xla/base/instance.hpp"

namespace xla {

/// Disables passes of graphs that are traced from now on, as in "-share,-fuse"; "" enables all. It
/// serves to find the pass that causes an error or a gain. In compiled functions it affects the
/// passes that arrange the steps for given sizes, "-slices,-side_by_side", at new sizes; for the
/// others see xla::tags::without. XLA_PASSES in the environment does the same from the start.
/// Throws runtime_error with the names of all passes for an unknown one.
template <class = void>
void set_passes(std::string_view list);

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/state/selected_passes.hpp"
#endif
