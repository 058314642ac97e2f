// SPDX-License-Identifier: Apache-2.0
// The run time for all translation units of a program: see xla/base/instance.hpp.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_RUN
#include <xla/xla.hpp>
