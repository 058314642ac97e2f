// SPDX-License-Identifier: Apache-2.0
// Kernels and gradients of some ops, for all translation units of a program: made by cmake -P cmake/op_list.cmake.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_OPS
#include <xla/kernel/op/cummax.hpp>
#include <xla/kernel/op/gather.hpp>
#include <xla/kernel/op/reduce.hpp>
#include <xla/kernel/op/scan.hpp>
#include <xla/kernel/op/sort.hpp>
#include <xla/op/argmax.hpp>
#include <xla/op/cummax.hpp>
#include <xla/op/logcumsumexp.hpp>
#include <xla/op/median.hpp>
#include <xla/op/prod.hpp>
#include <xla/op/reduce.hpp>
#include <xla/op/scan.hpp>
#include <xla/op/search.hpp>
#include <xla/op/sort.hpp>

#define OP(type, group) XLA_TYPES_##group(XLA_MAKE_OP, XLA_MAKE_OP, XLA_MAKE_OP, type);
OP(xla::op::argmax, positions)
OP(xla::op::argmin, positions)
OP(xla::op::cummax_index, positions)
OP(xla::op::cummin_index, positions)
OP(xla::op::logcumsumexp, fractions)
OP(xla::op::median_index, positions)
OP(xla::op::median, numbers)
OP(xla::op::prod, numbers)
OP(xla::op::sum, numbers)
OP(xla::op::max, numbers)
OP(xla::op::min, numbers)
OP(xla::op::cumsum, numbers)
OP(xla::op::recurrence, fractions)
OP(xla::op::cumprod, numbers)
OP(xla::op::searchsorted, positions)
OP(xla::op::argsort, positions)
