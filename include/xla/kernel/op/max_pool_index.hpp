// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of the positions of the largest elements, which pools return for max_unpool().

#include <algorithm>
#include <cstdint>

#include "xla/kernel/op/pooling_gradient.hpp"

namespace xla::detail {

/// The position of the largest element of each window.
template <class Out, class T>
struct kernel_of<op::max_pool_index, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::max_pool_index>();
    const kernel::window_grid g(call.in_shapes[0], *call.out_shape, a);
    const T* const x = static_cast<const T*>(call.in[0]);
    Out* const out = static_cast<Out*>(call.out);
    const bool in_vectors = g.inner > 1 && largest_position<T>::counts(g.largest());
    for_each_window(g,
                    [&](std::int64_t image, const kernel::window_elements& under, std::int64_t to) {
                      if (kernel::is_vector<T> && in_vectors && under.rows * under.columns > 0)
                        return positions(x + image, under, out + to, g.inner);
                      for (std::int64_t k = 0; k < g.inner; ++k) {
                        const std::int64_t at = largest_position<T>::of_one(x + image + k, under);
                        out[to + k] = at < 0 ? 0 : at / g.inner;
                      }
                    });
  }

 private:
  static void positions(const T* x, const kernel::window_elements& under, Out* to,
                        std::int64_t channels) {
    using V = kernel::vec<T>;
    constexpr int w = kernel::lanes<T>;
    if constexpr (w > 1)
      in_packets<T>(channels, [&](std::int64_t k, auto packets, auto lanes) XLA_INLINE_LAMBDA {
        V where[packets()];
        largest_position<T>::template find<packets()>(x + k, under, lanes, where);
        T numbers[packets() * w];
        kernel::unroll<packets()>([&](auto i) XLA_INLINE_LAMBDA {
          kernel::store_numbers(numbers + i * w, where[i].v, kernel::all_lanes{});
        });
        const std::int64_t n = std::min<std::int64_t>(packets() * w, channels - k);
        for (std::int64_t i = 0; i < n; ++i) {
          const auto number = static_cast<std::int64_t>(numbers[i]);
          const std::int64_t row = number / under.columns, column = number % under.columns;
          to[k + i] = (under.first + row * under.row_step + column * under.column_step) / channels;
        }
      });
  }
};

}  // namespace xla::detail
