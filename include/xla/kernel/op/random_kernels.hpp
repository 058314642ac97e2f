// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of ops that draw random numbers. They divide the counters of kernel/random among
// threads.

#include <algorithm>
#include <limits>
#include <string>

#include "xla/base/error.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/op/random.hpp"
#include "xla/kernel/random/philox.hpp"

namespace xla::detail {

template <class T, class Fill>
void fill_in_parallel(const kernel_call& call, Fill fill) {
  constexpr std::int64_t group = philox_lanes * philox_elements(sizeof(T)), ops = 16;
  const std::int64_t n = count(*call.out_shape);
  T* out = static_cast<T*>(call.out);
  kernel::for_ranges((n + group - 1) / group, group * ops,
                     [&](std::int64_t first, std::int64_t last) {
                       fill(out + first * group, std::min(last * group, n) - first * group,
                            call.offset + static_cast<std::uint64_t>(first * philox_lanes));
                     });
}

template <class Out, class T>
void kernel_of<op::uniform, Out, T>::run(const kernel_call& call) {
  fill_in_parallel<T>(call, [&](T* out, std::int64_t n, std::uint64_t offset) {
    fill_uniform(out, n, call.seed, offset);
  });
}

template <class Out, class T>
void kernel_of<op::normal, Out, T>::run(const kernel_call& call) {
  fill_in_parallel<T>(call, [&](T* out, std::int64_t n, std::uint64_t offset) {
    fill_normal(out, n, call.seed, offset);
  });
}

template <class Out, class T>
void kernel_of<op::integers, Out, T>::run(const kernel_call& call) {
  const T low = *static_cast<const T*>(call.in[0]), high = *static_cast<const T*>(call.in[1]);
  fill_in_parallel<T>(call, [&](T* out, std::int64_t n, std::uint64_t offset) {
    fill_integers(out, n, low, high, call.seed, offset);
  });
}

template <class Out, class T>
void kernel_of<op::permutation, Out, T>::run(const kernel_call& call) {
  fill_permutation(static_cast<T*>(call.out), count(*call.out_shape), call.seed, call.offset);
}

template <class = void>
std::int64_t count_rows(shape s) {
  s[s.rank - 1] = 1;
  return count(s);
}
template <class = void>
[[noreturn]] void refuse_probabilities(const text& why) {
  throw runtime_error("multinomial: " + std::string(why.view()));
}

template <class Out, class T>
void kernel_of<op::check_probabilities, Out, T>::run(const kernel_call& call) {
  const T* p = static_cast<const T*>(call.in[0]);
  const std::int64_t all = count(*call.out_shape), n = (*call.out_shape)[call.out_shape->rank - 1];
  const std::int64_t rows = count_rows(*call.out_shape);
  const std::int64_t wanted = call.attributes<op::check_probabilities>().above;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t above = 0;
    for (std::int64_t i = row * n; i < row * n + n; ++i) {
      if (!(p[i] >= 0 && p[i] <= std::numeric_limits<T>::max()))
        refuse_probabilities(text("the probability at position ")
                             << i << " is negative, infinite or NaN");
      above += p[i] > 0;
    }
    if (above < wanted)
      refuse_probabilities(text("row ")
                           << row << " has " << above << " probabilities above 0 and needs "
                           << wanted << " for that many different samples");
  }
  std::copy_n(p, all, static_cast<T*>(call.out));
}

}  // namespace xla::detail
