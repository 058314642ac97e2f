// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of cummax and cummin: positions of the largest and smallest element so far.

#include <cstdint>

#include "xla/kernel/op/sort.hpp"
#include "xla/op/cummax.hpp"

namespace xla::detail {

template <class Op, class T>
void run_best_so_far(const kernel_call& call) {
  for_each_line<T, std::int64_t>(
      call, call.attributes<Op>().axis,
      [](const T* x, std::int64_t n, std::int64_t* index, std::int64_t, std::int64_t step) {
        std::int64_t best = 0;
        for (std::int64_t k = 0; k < n; ++k) {
          const T a = x[k * step], b = x[best * step];
          if (a != a || (b == b && Op::as_good(a, b))) best = k;
          index[k * step] = best;
        }
      });
}
template <class Out, class T>
struct kernel_of<op::cummax_index, Out, T> {
  static void run(const kernel_call& call) { run_best_so_far<op::cummax_index, T>(call); }
};
template <class Out, class T>
struct kernel_of<op::cummin_index, Out, T> {
  static void run(const kernel_call& call) { run_best_so_far<op::cummin_index, T>(call); }
};

}  // namespace xla::detail
