// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/memory/matrix_view.hpp"
#include "xla/shape/bfloat16.hpp"

// The interface of matrix products with operands rounded to bfloat16; bfloat16.hpp defines it. Ops,
// convolutions and attention call gemm_bfloat16() in autocast.

namespace xla::kernel {

/// How products at bfloat16's precision are computed: `fma` multiplies rounded numbers as floats,
/// `dot` takes them in pairs, by `vdpbf16ps`, `amx` in tiles, by `tdpbf16ps`.
enum class bfloat16_algorithm { fma, dot, amx };

/// Which way this process takes, on every thread: `dot` where the processor has the instruction and
/// it is faster than multiply-adds of the vectors that the program is compiled for. The environment
/// variable XLA_BF16, fma, dot or amx, says otherwise; what the processor lacks is not taken, nor
/// what headers alone lack that are compiled for less than AVX-512. `amx` is taken only where
/// XLA_BF16 says so, by Linux's leave, for which the first product asks: it has been tested by
/// emulation, and no processor that has it has run it yet. Once it is granted, Linux refuses
/// alternate signal stacks of 8 KiB; while a thread has one, it refuses the leave, and another way
/// is taken.
template <class = void>
bfloat16_algorithm bfloat16_products();

/// c(m, n), row-major with leading dimension ldc, = a(m, k) · b(k, n) with both operands rounded to
/// bfloat16, to the nearest even, and sums in float; k = 0 gives zeros. Each sum over k runs in an
/// order that depends on k and the way alone, not on strides or threads, nor on m and n but for
/// this: products with up to 4 rows or with one column have an order of their own. Ways agree to
/// the rounding of the sums: amx sums the even and the odd of each 32 of k apart, dot one chain of
/// pairs, the higher k first; dot in the order of amx takes 1.37 times as long. Both take operands
/// and results that are denormal for 0. With up to 4 rows or one column amx is dot. What comes
/// after c may be told of its parts. Throws std::bad_alloc.
template <class A, class B>
void gemm_bfloat16(std::int64_t m, std::int64_t n, std::int64_t k, matrix_view<A> a,
                   matrix_view<B> b, float* c, std::int64_t ldc, const epilogue* after = nullptr);

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE && XLA_KERNELS_HERE
#include "xla/kernel/gemm/bfloat16.hpp"
#endif
