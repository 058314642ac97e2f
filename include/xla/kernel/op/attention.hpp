// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of the attention ops: they turn tensors into an attention_call, which
// kernel/attention computes.

#include "xla/base/instance.hpp"
#include "xla/kernel/attention/call.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/gemm/rounded_call.hpp"
#include "xla/op/attention.hpp"
#include "xla/shape/shape.hpp"

namespace xla::kernel {

/// Writes out (batch, heads, queries, out_width), unless it has no data. If logs is not null,
/// writes each query's largest score and the logarithm of its sum of exponentials relative to that
/// score (batch, heads, 2, queries); 0 for a query that attends to nothing. Memory: some rows for
/// each thread. Bits depend on sizes alone.
template <class T>
void attend(const attention_call<T>& c, const head_rows<T>& out, T* logs);

/// The gradients of attention. Memory: some rows for each thread and, if threads share the keys of
/// a head, several times the size of the queries. Bits depend on sizes alone. Throws
/// std::bad_alloc.
template <class T>
void attend_back(const attention_gradient_call<T>& c);

}  // namespace xla::kernel

namespace xla::detail {

/// Element (batch, head, row, 0) of a tensor of four axes.
template <class T>
kernel::head_rows<T> rows_of(T* data, const shape& s) {
  return {data, s[1] * s[2] * s[3], s[2] * s[3], s[3]};
}
template <class T>
kernel::head_rows<const T> rows_of(const kernel_call& call, int i) {
  return rows_of(static_cast<const T*>(call.in[i]), call.in_shapes[i]);
}

/// The sizes and options of attention or of its gradient; its mask is input `mask`.
template <class T>
kernel::attention_call<T> attention_of(const kernel_call& call, int mask) {
  const auto [causal, shown, added, rounding] = call.attributes<op::attention>();
  const shape &q = call.in_shapes[0], &k = call.in_shapes[1], &v = call.in_shapes[2];
  kernel::attention_call<T> c{q[0],
                              q[1],
                              k[1],
                              q[2],
                              k[2],
                              q[3],
                              v[3],
                              causal,
                              rows_of<T>(call, 0),
                              rows_of<T>(call, 1),
                              rows_of<T>(call, 2),
                              {}};
  if (!shown && !added) return c;
  const shape& m = call.in_shapes[mask];
  if (shown) c.mask.shown = static_cast<const bool*>(call.in[mask]);
  else c.mask.added = static_cast<const T*>(call.in[mask]);
  std::int64_t* const strides[] = {&c.mask.batch, &c.mask.head, &c.mask.query, &c.mask.key};
  std::int64_t step = 1;
  for (int i = 3; i >= 0; --i) {
    *strides[i] = m[i] == 1 ? 0 : step;
    step *= m[i];
  }
  return c;
}

template <class Op>
bool rounds(const kernel_call& call) {
  return call.attributes<Op>().precision == precision::bfloat16;
}

template <class Out, class T>
struct kernel_of<op::attention, Out, T> {
  static void run(const kernel_call& call) {
    const auto c = attention_of<T>(call, 3);
    shape made = call.in_shapes[0];
    made[3] = c.out_width;
    auto* attend = &kernel::attend<T>;
    if constexpr (std::is_same_v<T, float>)
      if (rounds<op::attention>(call)) attend = kernel::the_rounded_attention.load()->forward;
    attend(c, rows_of(static_cast<T*>(call.outs[0]), made), static_cast<T*>(call.outs[1]));
  }
};

template <class Out, class T>
struct kernel_of<op::attention_gradient, Out, T> {
  static void run(const kernel_call& call) {
    const auto made = [&](int i) {
      return rows_of(static_cast<T*>(call.outs[i]), call.in_shapes[i]);
    };
    auto* back = &kernel::attend_back<T>;
    if constexpr (std::is_same_v<T, float>)
      if (rounds<op::attention_gradient>(call)) back = kernel::the_rounded_attention.load()->back;
    back({attention_of<T>(call, 6), rows_of<T>(call, 4), rows_of<T>(call, 3),
          static_cast<const T*>(call.in[5]), made(0), made(1), made(2)});
  }
};

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/kernel/attention/gradient.hpp"
#endif
