// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of cumulative ops: cumsum, cumprod, logcumsumexp, recurrence. Several lines run
// together.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/simd/lane.hpp"
#include "xla/op/logcumsumexp.hpp"
#include "xla/op/scan.hpp"

namespace xla::detail {

/// The type of a scan's running value: double for floating-point types, because rounding errors
/// would add up.
template <class T>
using carried = std::conditional_t<std::is_floating_point_v<T>, double, T>;

/// Writes each line of out along an axis, in the direction of the attributes: its first element is
/// first(position), each other next(previous running value, its position, own position).
template <class T, class First, class Next>
void scan_lines(const kernel_call& call, First first, Next next) {
  const auto scan = call.attributes<op::scanning>();
  const kernel::lines_along l(*call.out_shape, scan.axis);
  T* out = static_cast<T*>(call.out);
  if (l.n == 0) return;
  const std::int64_t step = scan.backward ? -l.inner : l.inner;
  constexpr std::int64_t lines_at_once = 64;  // lines that are scanned together
  for (std::int64_t o = 0; o < l.outer; ++o) {
    if (l.inner == 1) {  // the running value stays in a register
      std::int64_t at = scan.backward ? (o + 1) * l.n - 1 : o * l.n;
      carried<T> last = first(at);
      out[at] = static_cast<T>(last);
      for (std::int64_t k = 1; k < l.n; ++k, at += step)
        out[at + step] = static_cast<T>(last = next(last, at, at + step));
      continue;
    }
    for (std::int64_t line = 0; line < l.inner; line += lines_at_once) {
      const std::int64_t lines = std::min(lines_at_once, l.inner - line);
      std::int64_t at = (o * l.n + (scan.backward ? l.n - 1 : 0)) * l.inner + line;
      carried<T> last[lines_at_once];
      for (std::int64_t i = 0; i < lines; ++i)
        out[at + i] = static_cast<T>(last[i] = first(at + i));
      for (std::int64_t k = 1; k < l.n; ++k, at += step)
        for (std::int64_t i = 0; i < lines; ++i)
          out[at + step + i] = static_cast<T>(last[i] = next(last[i], at + i, at + step + i));
    }
  }
}

template <class Out, class T>
struct kernel_of<op::cumsum, Out, T> {
  static void run(const kernel_call& call) {
    using A = carried<T>;
    const T* x = static_cast<const T*>(call.in[0]);
    scan_lines<T>(
        call, [=](std::int64_t i) { return static_cast<A>(x[i]); },
        [=](A sum, std::int64_t, std::int64_t i) {
          return kernel::add_wrapping(sum, static_cast<A>(x[i]));
        });
  }
};

template <class Out, class T>
struct kernel_of<op::cumprod, Out, T> {
  static void run(const kernel_call& call) {
    using A = carried<T>;
    const T* x = static_cast<const T*>(call.in[0]);
    const bool before = call.attributes<op::cumprod>().exclusive;
    scan_lines<T>(
        call, [=](std::int64_t i) { return static_cast<A>(before ? T{1} : x[i]); },
        [=](A product, std::int64_t last, std::int64_t i) {
          return kernel::multiply_wrapping(product, static_cast<A>(x[before ? last : i]));
        });
  }
};

template <class Out, class T>
struct kernel_of<op::logcumsumexp, Out, T> {
  static void run(const kernel_call& call) {
    const T* x = static_cast<const T*>(call.in[0]);
    scan_lines<T>(
        call, [=](std::int64_t i) { return static_cast<double>(x[i]); },
        [=](double before, std::int64_t, std::int64_t i) {
          const double now = x[i];
          if (before == now) return now + std::numbers::ln2;  // also for infinities
          const double more = std::log1p(std::exp(-std::abs(before - now)));
          return (before > now ? before : now) + more;
        });
  }
};

template <class Out, class T>
struct kernel_of<op::recurrence, Out, T> {
  static void run(const kernel_call& call) {
    const T* a = static_cast<const T*>(call.in[0]);
    const T* b = static_cast<const T*>(call.in[1]);
    const auto scan = call.attributes<op::recurrence>();
    scan_lines<T>(
        call, [=](std::int64_t i) { return carried<T>(scan.exclusive ? T{} : a[i]); },
        [=](carried<T> y, std::int64_t last, std::int64_t i) {
          return a[scan.exclusive ? last : i] + b[scan.exclusive || scan.shifted ? last : i] * y;
        });
  }
};

}  // namespace xla::detail
