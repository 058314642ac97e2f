// SPDX-License-Identifier: Apache-2.0
// The passes over recorded graphs and their printed stages, for all translation units of a program.
// Other units of the run time name passes at most, so that a changed pass compiles this one again.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_PASSES
#include <xla/kernel/op/map.hpp>  // casts of bfloat16
#include <xla/run/call/stages.hpp>
#include <xla/run/state/recorded_passes.hpp>
