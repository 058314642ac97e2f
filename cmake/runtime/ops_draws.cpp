// SPDX-License-Identifier: Apache-2.0
// Kernels and gradients of some ops, for all translation units of a program: made by cmake -P cmake/op_list.cmake.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_OPS
#include <xla/kernel/op/random.hpp>
#include <xla/op/integers.hpp>
#include <xla/op/multinomial.hpp>
#include <xla/op/random.hpp>

#define OP(type, group) XLA_TYPES_##group(XLA_MAKE_OP, XLA_MAKE_OP, XLA_MAKE_OP, type);
OP(xla::op::integers, indices)
OP(xla::op::permutation, indices)
OP(xla::op::check_probabilities, doubles)
OP(xla::op::uniform, fractions)
OP(xla::op::normal, fractions)
