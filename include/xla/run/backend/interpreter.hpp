// SPDX-License-Identifier: Apache-2.0
#pragma once

// The backend "interpreter": runs programs op by op, as in eager mode, by each op's own kernel on
// memory of its own. It is a reference for optimizations that fuse, reorder and share memory.
// "interpreter:double" computes the sums of floats in double (reductions, products, scans and
// scatter additions) and rounds each once: a reference for accuracy. Both count ops like eager
// mode, as xla::<op>. CMake's target xla::interpreter adds it to a program.

#include "xla/base/instance.hpp"

namespace xla::detail {

/// Registers both; run/backend/interpret.hpp defines it.
template <class = void>
bool add_interpreter();

inline const bool interpreter_added = add_interpreter();

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/backend/interpret.hpp"
#endif
