// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/matrix_view.hpp"
#include "xla/shape/bfloat16.hpp"

namespace xla::kernel {

/// How products at bfloat16's precision are computed: `fma` multiplies rounded numbers as floats,
/// `dot` takes them in pairs, by `vdpbf16ps`.
enum class bfloat16_way { fma, dot };

/// Which way this process takes, on every thread: `dot` where the processor has the instruction and
/// it is faster than multiply-adds of the vectors that the program is compiled for. The environment
/// variable XLA_BF16, fma or dot, says otherwise; what the processor lacks is not taken, nor what
/// headers alone lack that are compiled for less than AVX-512.
template <class = void>
bfloat16_way bfloat16_products();

/// c(m, n), row-major with leading dimension ldc, = a(m, k) · b(k, n) with both operands rounded to
/// bfloat16, to the nearest even, and sums in float; k = 0 gives zeros. Each sum over k runs in an
/// order that depends on k and the way alone, not on strides or threads, nor on m and n but for
/// this: products with up to 4 rows or with one column have an order of their own. Ways agree to
/// the rounding of the sums: dot in the order of AMX, which fma could follow, takes 1.37 times as
/// long. It takes operands and results that are denormal for 0. What comes after c may be told of
/// its parts. Throws std::bad_alloc.
template <class A, class B>
void gemm_bfloat16(std::int64_t m, std::int64_t n, std::int64_t k, matrix_view<A> a,
                   matrix_view<B> b, float* c, std::int64_t ldc, const epilogue* after = nullptr);

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE
#include "xla/kernel/gemm_bfloat16.hpp"
#endif
