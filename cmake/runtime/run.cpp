// SPDX-License-Identifier: Apache-2.0
// What is the same in every program but the ops' kernels: see xla/base/instance.hpp.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_RUN
#include <xla/xla.hpp>

extern "C" const char XLA_RUNTIME_TAG = 0;
