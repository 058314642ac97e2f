// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where eager mode that fuses (Eager::fused) ends a graph without being asked: it records as traced
// mode does. optim/ calls end_of_update(), start_op.hpp the rest. A graph must end at the same op
// in every iteration of a program's loop, so that it is found again and not planned anew.

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/state/mode.hpp"

namespace xla {

/// An optimizer calls it when it has made its step, at run time: in eager mode that fuses what is
/// recorded runs, while the program prepares the next step. In other modes it does nothing.
template <class In = void>
void end_of_update();

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/trace/fused_graphs.hpp"
#endif
