// SPDX-License-Identifier: Apache-2.0
#pragma once

// The macro XLA_OP, which registers an op for passes, fused regions and the runtime library.
// Headers with ops get it from op.hpp.

#include <cstdint>

#include "xla/base/instance.hpp"
#include "xla/op/info.hpp"

/// Registers an op, below its definition. Fused regions find it by its id (two names with one id do
/// not compile), and xla::runtime instantiates its kernels and gradient for a group of element
/// types. A program instantiates other types where it uses them. op/list.hpp is generated from
/// these lines.
#define XLA_OP(type, group) \
  XLA_DETAIL_OP_ID(type);   \
  XLA_TYPES_##group(XLA_DETAIL_ELSEWHERE, XLA_DETAIL_ELSEWHERE, XLA_DETAIL_ELSEWHERE, type)

#if defined(XLA_EXTERN_RUNTIME)
#define XLA_DETAIL_ELSEWHERE(type, Out, In)                        \
  extern template struct xla::detail::kernel_entry<type, Out, In>; \
  extern template const xla::detail::op_info xla::detail::info_of<type, Out, In>
#else
#define XLA_DETAIL_ELSEWHERE(...) static_assert(true)
#endif

// The sources of xla::runtime define the groups' macros: an op's kernels and gradient are either
// instantiated here, or in another source.
#define XLA_MAKE_OP(type, Out, In)                          \
  template struct xla::detail::kernel_entry<type, Out, In>; \
  template const xla::detail::op_info xla::detail::info_of<type, Out, In>
#define XLA_SKIP_OP(type, Out, In) static_assert(true)

// The groups: F(type, Out, In) if In is float, D if it is double, I otherwise.
#define XLA_TYPES_fractions(F, D, I, type) \
  F(type, float, float);                   \
  D(type, double, double)
#define XLA_TYPES_doubles(F, D, I, type) D(type, double, double)
#define XLA_TYPES_indices(F, D, I, type) I(type, std::int64_t, std::int64_t)
#define XLA_TYPES_booleans(F, D, I, type) I(type, bool, bool)
#define XLA_TYPES_numbers(F, D, I, type) \
  XLA_TYPES_fractions(F, D, I, type);    \
  XLA_TYPES_indices(F, D, I, type)
#define XLA_TYPES_all(F, D, I, type) \
  XLA_TYPES_numbers(F, D, I, type);  \
  XLA_TYPES_booleans(F, D, I, type)
#define XLA_TYPES_comparisons(F, D, I, type) \
  F(type, bool, float);                      \
  D(type, bool, double);                     \
  I(type, bool, std::int64_t)
#define XLA_TYPES_positions(F, D, I, type) \
  F(type, std::int64_t, float);            \
  D(type, std::int64_t, double);           \
  I(type, std::int64_t, std::int64_t)
#define XLA_TYPES_conversions(F, D, I, type) \
  F(type, double, float);                    \
  F(type, std::int64_t, float);              \
  F(type, bool, float);                      \
  D(type, float, double);                    \
  D(type, std::int64_t, double);             \
  D(type, bool, double);                     \
  I(type, float, std::int64_t);              \
  I(type, double, std::int64_t);             \
  I(type, bool, std::int64_t);               \
  I(type, float, bool);                      \
  I(type, double, bool);                     \
  I(type, std::int64_t, bool)
