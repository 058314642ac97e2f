// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/instance.hpp"
#include "xla/kernel/attention/call.hpp"

// The interface of attention with operands rounded to bfloat16; rounded.hpp defines it. The kernel
// of the op calls it in autocast.

namespace xla::kernel {

/// As attend() and attend_back() of floats, with the operands of each product rounded to bfloat16,
/// to the nearest even, and sums in float: keys and values once for all queries, queries and the
/// result's gradient once for a block of keys, and of each score its weight and its gradient. In
/// blocks weights are rounded before they are divided by their sum, so that results differ from
/// those of other ops by that rounding. What holds of denormals and of other ways in
/// gemm_bfloat16() holds here; `amx` is as `fma`, but for up to 4 queries. Memory: that of
/// attend(), and by `dot` half as much as keys and values take, with gradients three quarters, by
/// `fma` as much. Throws std::bad_alloc.
template <class T>
void attend_bfloat16(const attention_call<T>& c, const head_rows<T>& out, T* logs);
template <class T>
void attend_back_bfloat16(const attention_gradient_call<T>& c);

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE
#include "xla/kernel/attention/rounded.hpp"
#endif
