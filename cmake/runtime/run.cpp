// SPDX-License-Identifier: Apache-2.0
// What is the same in every program but the ops' kernels: see xla/base/instance.hpp. Not all of xla.hpp, so that a
// changed op does not compile it again.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_RUN
#include <xla/base/option.hpp>
#include <xla/kernel/convolution/allow_winograd.hpp>
#include <xla/kernel/op/image_sum.hpp>  // of the steps that
#include <xla/kernel/op/map.hpp>        // casts of bfloat16
#include <xla/kernel/op/movement.hpp>   // passes make
#include <xla/kernel/op/slice.hpp>      // of gradients of loops
#include <xla/run/backend/planned_loops.hpp>
#include <xla/run/call/compiled_calls.hpp>
#include <xla/run/execute/image_groups.hpp>
#include <xla/run/state/metric_report.hpp>
#include <xla/run/trace/autocast.hpp>
#include <xla/run/trace/loop_as_function.hpp>
#include <xla/run/trace/trace_loops.hpp>
#include <xla/tensor/assigned.hpp>

extern "C" const char XLA_RUNTIME_TAG = 0;
