// SPDX-License-Identifier: Apache-2.0
// The engine "interpreter", for programs that link xla::interpreter.
#define XLA_RUNTIME_SOURCE
#include <xla/run/engine/interpreter.hpp>

template bool xla::detail::add_interpreter<void>();
