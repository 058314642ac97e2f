// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/kernel/lane.hpp"
#include "xla/kernel/loops.hpp"
#include "xla/op/scan.hpp"

namespace xla::detail {

/// Writes each line of out along an axis, in the order that `scan` says: its first element is
/// first(place), each other next(element before, its place, own place).
template <class T, class First, class Next>
void scan_lines(const kernel_call& call, First first, Next next) {
  const op::scan scan(call.attr);
  const kernel::lines_along l(*call.out_shape, scan.axis);
  T* out = static_cast<T*>(call.out);
  if (l.n == 0) return;
  const std::int64_t step = scan.from_last ? -l.inner : l.inner;
  for (std::int64_t o = 0; o < l.outer; ++o) {
    std::int64_t at = (o * l.n + (scan.from_last ? l.n - 1 : 0)) * l.inner;
    if (l.inner == 1) {  // the element before stays in a register
      T last = out[at] = first(at);
      for (std::int64_t k = 1; k < l.n; ++k, at += step)
        out[at + step] = last = next(last, at, at + step);
      continue;
    }
    for (std::int64_t i = 0; i < l.inner; ++i) out[at + i] = first(at + i);
    for (std::int64_t k = 1; k < l.n; ++k, at += step)
      for (std::int64_t i = at; i < at + l.inner; ++i) out[i + step] = next(out[i], i, i + step);
  }
}

template <class Out, class T>
struct kernel_of<op::cumsum, Out, T> {
  static void run(const kernel_call& call) {
    const T* x = static_cast<const T*>(call.in[0]);
    scan_lines<T>(
        call, [=](std::int64_t i) { return x[i]; },
        [=](T sum, std::int64_t, std::int64_t i) { return kernel::add_wrapping(sum, x[i]); });
  }
};

template <class Out, class T>
struct kernel_of<op::cumprod, Out, T> {
  static void run(const kernel_call& call) {
    const T* x = static_cast<const T*>(call.in[0]);
    const bool before = op::scan(call.attr).before;
    scan_lines<T>(
        call, [=](std::int64_t i) { return before ? T{1} : x[i]; },
        [=](T product, std::int64_t last, std::int64_t i) {
          return kernel::multiply_wrapping(product, x[before ? last : i]);
        });
  }
};

template <class Out, class T>
struct kernel_of<op::recurrence, Out, T> {
  static void run(const kernel_call& call) {
    const T* a = static_cast<const T*>(call.in[0]);
    const T* b = static_cast<const T*>(call.in[1]);
    const op::scan scan(call.attr);
    scan_lines<T>(
        call, [=](std::int64_t i) { return scan.before ? T{} : a[i]; },
        [=](T y, std::int64_t last, std::int64_t i) {
          return a[scan.before ? last : i] + b[scan.before || scan.factor_before ? last : i] * y;
        });
  }
};

}  // namespace xla::detail
