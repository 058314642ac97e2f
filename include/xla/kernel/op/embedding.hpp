// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of embedding and its gradient, and the check of an index. Rows are copied whole.

#include <algorithm>
#include <string>

#include "xla/kernel/fused/loops.hpp"
#include "xla/op/embedding.hpp"

namespace xla::detail {

/// Copies an index if each element is in range; else throws an error that begins with the function.
template <class In = void>
void copy_checked(const kernel_call& call, std::string_view function) {
  const auto* const index = static_cast<const std::int64_t*>(call.in[0]);
  const std::int64_t n = count(*call.out_shape);
  const extent limit = call.attributes<op::check_index>().limit;
  for (std::int64_t i = 0; i < n; ++i) {
    if (index[i] >= 0 && index[i] < limit) continue;
    text t;
    t << function << ": index " << index[i] << " at position " << i << " is outside [0, " << limit
      << ")" << call.at;
    throw index_error(std::string(t.view()));
  }
  std::copy_n(index, n, static_cast<std::int64_t*>(call.out));
}
XLA_OP_INSTANCE(void copy_checked<void>(const kernel_call&, std::string_view));

template <>
struct kernel_of<op::check_index, std::int64_t, std::int64_t> {
  static void run(const kernel_call& call) { copy_checked(call, op::check_index::name); }
};
template <class Function>
struct kernel_of<check_index_of<Function>, std::int64_t, std::int64_t> {
  static void run(const kernel_call& call) { copy_checked(call, Function::name); }
};

template <class Out, class T>
struct kernel_of<op::embedding, Out, T> {
  static void run(const kernel_call& call) {
    const T* table = static_cast<const T*>(call.in[0]);
    const std::int64_t* index = static_cast<const std::int64_t*>(call.in[1]);
    const std::int64_t n = count(call.in_shapes[1]), width = call.in_shapes[0][1];
    T* out = static_cast<T*>(call.out);
    kernel::for_ranges(n, width, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        std::copy_n(table + index[i] * width, width, out + i * width);
    });
  }
};

template <class Out, class T>
struct kernel_of<op::embedding_backward, Out, T> {
  static void run(const kernel_call& call) {
    const T* rows = static_cast<const T*>(call.in[0]);
    const std::int64_t* index = static_cast<const std::int64_t*>(call.in[1]);
    const std::int64_t n = count(call.in_shapes[1]), width = (*call.out_shape)[1];
    const std::int64_t all = (*call.out_shape)[0];
    const std::int64_t padding = call.attributes<op::embedding_backward>().padding_idx;
    T* out = static_cast<T*>(call.out);
    // Threads divide the columns, because a row may be named several times and adds up in order.
    constexpr std::int64_t strip = 64;
    kernel::for_ranges(
        (width + strip - 1) / strip, strip * (all + n), [&](std::int64_t begin, std::int64_t end) {
          const std::int64_t first = begin * strip, last = std::min(end * strip, width);
          for (std::int64_t r = 0; r < all; ++r)
            std::fill(out + r * width + first, out + r * width + last, T{});
          for (std::int64_t i = 0; i < n; ++i) {
            if (index[i] == padding) continue;
            T* to = out + index[i] * width;
            for (std::int64_t k = first; k < last; ++k) to[k] += rows[i * width + k];
          }
        });
  }
};

}  // namespace xla::detail
