// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "xla/kernel/loops.hpp"
#include "xla/op/embedding.hpp"

namespace xla::detail {

template <class Out, class T>
struct kernel_of<op::check_index, Out, T> {
  static void run(const kernel_call& call) {
    const T* in = static_cast<const T*>(call.in[0]);
    const std::int64_t n = count(*call.out_shape);
    const extent limit = call.attributes<op::check_index>().limit;
    for (std::int64_t i = 0; i < n; ++i)
      if (in[i] < 0 || in[i] >= limit) fail(call, i, in[i]);
    std::copy_n(in, n, static_cast<T*>(call.out));
  }

 private:
  [[noreturn]] static void fail(const kernel_call& call, std::int64_t at, T value) {
    const auto [function, limit] = call.attributes<op::check_index>();
    text t;
    t << checked_functions[function] << ": index " << value << " at position " << at
      << " is outside [0, " << extent{limit} << ")" << call.at;
    throw index_error(std::string(t.view()));
  }
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
    // Threads share out the columns: a row may be named more than once, and adds up in order.
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
