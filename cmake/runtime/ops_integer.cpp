// SPDX-License-Identifier: Apache-2.0
// Every op's kernels and gradient for int64 and bool, for all translation units of a program.
#define XLA_RUNTIME_SOURCE
#include <xla/xla.hpp>

#include <xla/op/list.hpp>

#define MAKE(type, Out, In)                                 \
  template struct xla::detail::kernel_entry<type, Out, In>; \
  template const xla::detail::op_info xla::detail::info_of<type, Out, In>
#define SKIP(...) static_assert(true)
#define OP(type, group) XLA_TYPES_##group(SKIP, SKIP, MAKE, type);
XLA_ALL_OPS(OP)
