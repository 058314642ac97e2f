// SPDX-License-Identifier: Apache-2.0
// Kernels and gradients of some ops, for all translation units of a program: made by cmake -P cmake/op_list.cmake.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_OPS
#include <xla/kernel/op/max_pool_index.hpp>
#include <xla/kernel/op/pooling.hpp>
#include <xla/kernel/op/pooling_gradient.hpp>
#include <xla/kernel/op/resample.hpp>
#include <xla/kernel/op/unfold.hpp>
#include <xla/op/avg_pool.hpp>
#include <xla/op/max_pool.hpp>
#include <xla/op/resample.hpp>
#include <xla/op/unfold.hpp>

#define OP(type, group) XLA_TYPES_##group(XLA_MAKE_OP, XLA_MAKE_OP, XLA_MAKE_OP, type);
OP(xla::op::avg_pool, fractions)
OP(xla::op::avg_pool_backward, fractions)
OP(xla::op::max_pool, numbers)
OP(xla::op::max_pool_index, positions)
OP(xla::op::max_pool_scatter, fractions)
OP(xla::op::max_pool_gather, fractions)
OP(xla::op::resample, numbers)
OP(xla::op::resample_backward, fractions)
OP(xla::op::unfold, numbers)
OP(xla::op::fold, numbers)
