// SPDX-License-Identifier: Apache-2.0
// The functions of the run time, for all translation units of a program: see xla/base/instance.hpp.
#define XLA_RUNTIME_INSTANCES
#include <xla/xla.hpp>

#ifndef XLA_RUNTIME_MADE
#error "xla: a precompiled header has included xla before: set SKIP_PRECOMPILE_HEADERS for runtime.cpp"
#endif
