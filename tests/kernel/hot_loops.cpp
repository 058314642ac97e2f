// SPDX-License-Identifier: Apache-2.0
// Kernels of products and convolutions, whose code hot_loops.py reads; nothing runs it.
#define XLA_RUNTIME_SOURCE
#include "xla/kernel/convolution/convolution.hpp"
#include "xla/kernel/gemm/bfloat16.hpp"
#include "xla/kernel/gemm/gemm.hpp"

namespace xla::kernel {

template void gemm<float>(std::int64_t, std::int64_t, std::int64_t, matrix_view<float>,
                          matrix_view<float>, float*, std::int64_t, const epilogue*);
template void gemm_bfloat16(std::int64_t, std::int64_t, std::int64_t, matrix_view<float>,
                            matrix_view<float>, float*, std::int64_t, const epilogue*);
template void conv_forward<float>(const conv_sizes&, const float*, conv_weights<float>, float*,
                                  const epilogue*);
template void conv_weight_gradient<float>(const conv_sizes&, const float*, const float*, float*);

}  // namespace xla::kernel
