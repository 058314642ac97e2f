// SPDX-License-Identifier: Apache-2.0
#pragma once

// The backend "interpreter": programs run op by op, as in eager mode, by each op's own kernel on
// memory of its own. An oracle for what fuses, reorders and shares memory. "interpreter:double"
// makes the sums of float in double (reductions, products, scans and additions to chosen places)
// and rounds each once: an oracle for accuracy. Both count ops as eager mode does, xla::<op>.
// CMake's target xla::interpreter brings it.

#include "xla/base/instance.hpp"

namespace xla::detail {

/// Makes both known; run/backend/interpret.hpp defines it.
template <class = void>
bool add_interpreter();

inline const bool interpreter_added = add_interpreter();

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/backend/interpret.hpp"
#endif
