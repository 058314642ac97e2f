// SPDX-License-Identifier: Apache-2.0
// The backend "interpreter", for programs that link xla::interpreter.
#define XLA_RUNTIME_SOURCE
#include <xla/run/backend/interpreter.hpp>

template bool xla::detail::add_interpreter<void>();
