// SPDX-License-Identifier: Apache-2.0
// Kernels and gradients of some ops, for all translation units of a program: made by cmake -P cmake/op_list.cmake.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_OPS
#define XLA_RUNTIME_PRODUCTS
#include <xla/kernel/gemm/rounded_kernels.hpp>
#include <xla/kernel/op/matmul_packed.hpp>
#include <xla/kernel/op/attention.hpp>
#include <xla/kernel/op/convolution.hpp>
#include <xla/kernel/op/image_sum.hpp>
#include <xla/kernel/op/matmul.hpp>
#include <xla/kernel/op/movement.hpp>
#include <xla/kernel/simd/bfloat16_support.hpp>
#include <xla/op/derived/attention_gradient.hpp>
#include <xla/op/methods.hpp>
#include <xla/transform/layouts.hpp>
#include <xla/op/attention.hpp>
#include <xla/op/convolution.hpp>
#include <xla/op/matmul.hpp>

#define OP(type, group) XLA_TYPES_##group(XLA_MAKE_OP, XLA_SKIP_OP, XLA_SKIP_OP, type);
OP(xla::op::attention, fractions)
OP(xla::op::attention_gradient, fractions)
OP(xla::op::convolution, fractions)
OP(xla::op::convolution_input, fractions)
OP(xla::op::convolution_weight, fractions)
OP(xla::op::matmul, fractions)
