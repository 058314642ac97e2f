// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of convolutions with operands rounded to bfloat16; rounded.hpp defines it. The
// kernels of the ops call it in autocast.

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/convolution/sizes.hpp"

namespace xla::kernel {

/// Like conv_forward(), conv_input_gradient() and conv_weight_gradient() of floats, with both
/// operands rounded to bfloat16, to the nearest even, and sums in float. Kernels of one pixel are
/// products by gemm_bfloat16(), whose rules for denormals and algorithms apply to all. Winograd's
/// algorithm rounds while it reads, `dot` while it packs; the others use rounded copies.
template <class = void>
void conv_forward_bfloat16(const conv_sizes& s, const float* x, conv_weights<float> w, float* y,
                           const epilogue* after = nullptr);
template <class = void>
void conv_input_gradient_bfloat16(const conv_sizes& s, const float* dy, conv_weights<float> w,
                                  float* dx, const epilogue* after = nullptr);
template <class = void>
void conv_weight_gradient_bfloat16(const conv_sizes& s, const float* x, const float* dy, float* dw);

/// Like conv_packed_size(), conv_pack() and cache_packed(), for rounded weights.
template <class = void>
std::int64_t conv_packed_size_bfloat16(const conv_sizes& s, conv_direction d);
template <class = void>
void conv_pack_bfloat16(const conv_sizes& s, conv_direction d, conv_weights<float> w, float* to);
template <class = void>
void cache_packed_bfloat16(xla::detail::buffer* cache_owner, const conv_sizes& s, conv_direction d,
                           conv_weights<float>& w);

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE
#include "xla/kernel/convolution/rounded.hpp"
#endif
