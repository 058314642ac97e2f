// SPDX-License-Identifier: Apache-2.0
// The ops that sum, for "interpreter:double". Apart, because it names all ops.
#define XLA_RUNTIME_SOURCE
#include <xla/kernel/op/image_sum.hpp>  // of the steps that
#include <xla/kernel/op/movement.hpp>   // passes make
#include <xla/run/backend/sums_in_double.hpp>
#include <xla/transform/layouts.hpp>

template const xla::detail::op_info* xla::detail::in_double<void>(const xla::detail::op_info&);
