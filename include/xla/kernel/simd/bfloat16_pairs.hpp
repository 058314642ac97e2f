// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vectors of 16 floats and of 16 pairs of bfloat16, and the instruction that multiplies pairs,
// whatever `-march` says: namespace bf16, in the form of the processor's family. The kernels of
// kernel/gemm, kernel/convolution and kernel/attention whose file is called dot or amx_pack are
// written with these functions, and no intrinsics; callers check bfloat16_products() first.

#include "xla/kernel/simd/bfloat16_code.hpp"
#if XLA_HAS_DOT

#if defined(__aarch64__)
#include "xla/kernel/simd/neon/bfloat16_pairs.hpp"
#else
#include "xla/kernel/simd/avx512/bfloat16_pairs.hpp"
#endif

#endif
