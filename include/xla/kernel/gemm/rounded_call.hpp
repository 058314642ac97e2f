// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pointers to the kernels of products and convolutions in autocast. Programs without autocast leave
// them null and do not link these kernels; rounded_kernels.hpp sets them.

#include <atomic>
#include <cstdint>

#include "xla/base/instance.hpp"
#include "xla/kernel/attention/call.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/convolution/sizes.hpp"
#include "xla/kernel/memory/matrix_view.hpp"

namespace xla::kernel {

/// A call of op::matmul with both operands rounded to bfloat16. With a `choice` it only reports
/// what is cached.
using rounded_matmul = void (*)(const ::xla::detail::kernel_call& call,
                                ::xla::detail::kernel_choice* choice);
/// The functions of kernel/convolution/convolution.hpp with operands rounded to bfloat16.
struct rounded_convolutions {
  void (*forward)(const conv_sizes& s, const float* x, conv_weights<float> w, float* y,
                  const epilogue* after);
  void (*input_gradient)(const conv_sizes& s, const float* dy, conv_weights<float> w, float* dx,
                         const epilogue* after);
  void (*weight_gradient)(const conv_sizes& s, const float* x, const float* dy, float* dw);
  std::int64_t (*packed_size)(const conv_sizes& s, conv_direction d);
  void (*cache_packed)(xla::detail::buffer* cache_owner, const conv_sizes& s, conv_direction d,
                       conv_weights<float>& w);
};
/// attend() and attend_back() of kernel/op/attention.hpp, likewise.
struct rounded_attention {
  void (*forward)(const attention_call<float>& c, const head_rows<float>& out, float* logs);
  void (*back)(const attention_gradient_call<float>& c);
};

/// Null in programs without such ops: kernels are reached only through these pointers, so that
/// those programs do not grow.
inline constinit std::atomic<rounded_matmul> the_rounded_matmul{nullptr};
inline constinit std::atomic<const rounded_convolutions*> the_rounded_convolutions{nullptr};
inline constinit std::atomic<const rounded_attention*> the_rounded_attention{nullptr};

/// A function that may need these kernels calls this first.
template <class = void>
void use_rounded_matmul();
template <class = void>
void use_rounded_convolutions();
template <class = void>
void use_rounded_attention();

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE && XLA_KERNELS_HERE
#include "xla/kernel/gemm/rounded_kernels.hpp"
#endif
