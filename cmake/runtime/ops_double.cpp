// SPDX-License-Identifier: Apache-2.0
// Every op's kernels and gradient for double, for all translation units of a program.
#define XLA_RUNTIME_SOURCE
#include <xla/xla.hpp>

#include <xla/kernel/op/cummax.hpp>
#include <xla/kernel/op/scatter_reduce.hpp>
#include <xla/op/list.hpp>

#define OP(type, group) XLA_TYPES_##group(XLA_SKIP_OP, XLA_MAKE_OP, XLA_SKIP_OP, type);
XLA_ALL_OPS(OP)
