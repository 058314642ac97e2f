// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention with operands rounded to bfloat16: chooses between `dot` products and rounded copies.
// It defines what bfloat16.hpp declares, and is compiled once, with the runtime or by autocast
// programs.

#include "xla/kernel/attention/bfloat16.hpp"
#include "xla/kernel/attention/dot.hpp"
#include "xla/kernel/attention/gradient.hpp"
#include "xla/kernel/gemm/bfloat16.hpp"
#include "xla/kernel/simd/bfloat16_support.hpp"

namespace xla::kernel {
namespace detail {

/// A call with rounded copies of keys and values.
template <class T>
class rounded_call {
 public:
  explicit rounded_call(const attention_call<T>& c) : call(c) {
    call.k = rounded(c.k, c.width, keys_);
    call.v = rounded(c.v, c.out_width, values_);
  }
  attention_call<T> call;

 private:
  head_rows<const T> rounded(const head_rows<const T>& x, index_t width,
                             ::xla::detail::working_memory& memory) const {
    const index_t heads = call.kv_heads, size = call.keys * width;
    T* const to = static_cast<T*>(
        memory.take(static_cast<std::size_t>(call.batch * heads * size) * sizeof(T)));
    const bool together = x.row == width;
    parallel_for(call.batch * heads, [&](index_t n) {
      for (index_t r = 0; r < (together ? 1 : call.keys); ++r)
        round_operand(x.at(n / heads, n % heads, r), together ? size : width,
                      to + n * size + r * width);
    });
    return {to, heads * size, size, width};
  }
  ::xla::detail::working_memory keys_, values_;
};

}  // namespace detail

template <class T>
void attend_bfloat16(const attention_call<T>& c, const head_rows<T>& out, T* logs) {
  using namespace detail;
  if (attends_by_rows(c)) return attend_by_rows<T, &gemm_bfloat16<T, T>>(c, out, logs);
#if XLA_HAS_DOT
  if (bfloat16_products() == bfloat16_algorithm::dot) {
    dot_heads<T> keys, values;
    keys.pack(c, c.k, c.width, true, false);
    values.pack(c, c.v, c.out_width, false, true);
    return attend_by(dot_products<T>(c, keys, values), c, out, logs);
  }
#endif
  const rounded_call<T> of(c);
  attend_by(tile_products<T, true>(of.call), of.call, out, logs);
}
XLA_PRODUCT_INSTANCE(void attend_bfloat16(const attention_call<float>&, const head_rows<float>&,
                                        float*));

template <class T>
void attend_back_bfloat16(const attention_gradient_call<T>& c) {
  using namespace detail;
#if XLA_HAS_DOT
  if (bfloat16_products() == bfloat16_algorithm::dot) {
    dot_heads<T> keys, values;
    keys.pack(c.of, c.of.k, c.of.width, true, c.q.data != nullptr);
    values.pack(c.of, c.of.v, c.of.out_width, true, false);
    return attend_back_by(dot_products<T>(c.of, keys, values), c);
  }
#endif
  const rounded_call<T> of(c.of);
  attention_gradient_call<T> rounded = c;
  rounded.of = of.call;
  attend_back_by(tile_products<T, true>(rounded.of), rounded);
}
XLA_PRODUCT_INSTANCE(void attend_back_bfloat16(const attention_gradient_call<float>&));

}  // namespace xla::kernel
