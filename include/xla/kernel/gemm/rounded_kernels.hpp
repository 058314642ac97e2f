// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets the pointers of rounded_call.hpp. autocast() includes it, and nothing else does.

#include "xla/base/dependent.hpp"
#include "xla/kernel/attention/bfloat16.hpp"
#include "xla/kernel/convolution/bfloat16.hpp"
#include "xla/kernel/gemm/rounded_call.hpp"
#include "xla/kernel/op/matmul_rounded.hpp"

namespace xla::kernel {
namespace detail {

template <class In>
inline constexpr rounded_convolutions all_rounded_convolutions{
    &conv_forward_bfloat16<In>, &conv_input_gradient_bfloat16<In>,
    &conv_weight_gradient_bfloat16<In>, &conv_packed_size_bfloat16<In>, &cache_packed_bfloat16<In>};
template <class In>
inline constexpr rounded_attention all_rounded_attention{
    &attend_bfloat16<dependent<In, float>>, &attend_back_bfloat16<dependent<In, float>>};

}  // namespace detail

template <class In>
void use_rounded_matmul() {
  the_rounded_matmul.store(&detail::run_rounded_matmul<dependent<In, float>>,
                           std::memory_order_relaxed);
}
XLA_PRODUCT_INSTANCE(void use_rounded_matmul<void>());

template <class In>
void use_rounded_convolutions() {
  the_rounded_convolutions.store(&detail::all_rounded_convolutions<In>, std::memory_order_relaxed);
}
XLA_PRODUCT_INSTANCE(void use_rounded_convolutions<void>());

template <class In>
void use_rounded_attention() {
  the_rounded_attention.store(&detail::all_rounded_attention<In>, std::memory_order_relaxed);
}
XLA_PRODUCT_INSTANCE(void use_rounded_attention<void>());

}  // namespace xla::kernel
