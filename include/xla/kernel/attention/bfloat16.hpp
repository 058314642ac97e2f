// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of attention with operands rounded to bfloat16; rounded.hpp defines it. The kernel
// of the op calls it in autocast.

#include "xla/base/instance.hpp"
#include "xla/kernel/attention/call.hpp"

namespace xla::kernel {

/// Like attend() and attend_back() of floats, with the operands of each product rounded to
/// bfloat16, to the nearest even, and sums in float. Keys and values are rounded once for all
/// queries, queries and the result's gradient once per block of keys, weights and their gradients
/// once per score. Blocks round weights before dividing them by their sum, so that results differ
/// from those of other ops by that rounding. The rules of gemm_bfloat16() for denormals and
/// algorithms apply; `amx` is like `fma`, except for up to 4 queries. Memory: that of attend();
/// with `dot` also half the size of keys and values, three quarters with gradients; with `fma` also
/// their full size. Throws std::bad_alloc.
template <class T>
void attend_bfloat16(const attention_call<T>& c, const head_rows<T>& out, T* logs);
template <class T>
void attend_back_bfloat16(const attention_gradient_call<T>& c);

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE
#include "xla/kernel/attention/rounded.hpp"
#endif
