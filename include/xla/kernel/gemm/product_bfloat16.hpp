// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of matrix products with operands rounded to bfloat16; bfloat16.hpp defines it. Ops,
// convolutions and attention call gemm_bfloat16() in autocast.

#include <cstdint>

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/memory/matrix_view.hpp"
#include "xla/shape/bfloat16.hpp"

namespace xla::kernel {

/// How products at bfloat16's precision are computed: `fma` multiplies rounded numbers as floats,
/// `dot` multiplies pairs by `vdpbf16ps` or ARM's `bfdot`, `amx` multiplies tiles by `tdpbf16ps`.
enum class bfloat16_algorithm { fma, dot, amx };

/// The algorithm of this process, on every thread. It is `dot` if the processor has the instruction
/// and it is faster than multiply-adds of the vectors that the program is compiled for, else `fma`.
/// The environment variable XLA_BF16 (fma, dot or amx) overrides the choice, unless the processor
/// lacks the instruction, or the program has headers alone and is compiled for x86-64 with less
/// than AVX-512. `amx` is used only if XLA_BF16 says so and Linux grants it at the first product.
/// It has been tested by emulation, and never on a processor that has it. Once Linux has granted
/// it, it refuses alternate signal stacks of 8 KiB. While a thread has one, Linux refuses the
/// grant, and another algorithm is used.
template <class = void>
bfloat16_algorithm bfloat16_products();

/// c(m, n), row-major with leading dimension ldc, = a(m, k) · b(k, n) with both operands rounded to
/// bfloat16, to the nearest even, and sums in float; k = 0 gives zeros. The order of each sum over
/// k depends on k and the algorithm alone, not on strides or threads. It does not depend on m and n
/// either, except that products with up to 4 rows or with one column have an order of their own.
/// Algorithms agree up to the rounding of the sums: amx sums even and odd elements of each 32 of k
/// separately, dot adds one chain of pairs, on x86-64 the higher k first. ARM's dot rounds the sum
/// of a pair, and that with the total, to odd. On x86-64 dot in the order of amx would take 1.37
/// times as long. Both flush denormal operands and results to 0. With up to 4 rows or one column
/// amx is dot. The kernel may notify `after` of finished parts of c. Throws std::bad_alloc.
template <class A, class B>
void gemm_bfloat16(std::int64_t m, std::int64_t n, std::int64_t k, matrix_view<A> a,
                   matrix_view<B> b, float* c, std::int64_t ldc, const epilogue* after = nullptr);

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE && XLA_KERNELS_HERE
#include "xla/kernel/gemm/bfloat16.hpp"
#endif
