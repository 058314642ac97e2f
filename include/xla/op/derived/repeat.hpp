// SPDX-License-Identifier: Apache-2.0
#pragma once

// repeat(), tile() and repeat_interleave(), of reshapes and broadcasting.

#include "xla/op/create.hpp"

namespace xla {
namespace detail {

/// The product of some sizes of x.
template <class T, int R>
constexpr Size product_of(const Tensor<T, R>& x, int from, int to) {
  Size n = 1;
  for (int i = from; i < to; ++i) n = n * x.size(i);
  return n;
}
/// Repeats everything from axis `at` on `times` times; result names the previous axis.
template <class T, int R>
constexpr Tensor<T, R> repeat_from(const Tensor<T, R>& x, int at, int grows, Size times,
                                   const call_site& site) {
  if (times.known() && times.extent() == 1) return x;
  const Size outer = product_of(x, 0, at), inner = product_of(x, at, R);
  const Size sizes[] = {outer, times, inner};
  shape s = x.dims();
  const size_scope scope{x.table() ? x.table() : times.table(), site};
  s[grows] = scope.multiply(s[grows], times.extent());
  scope.countable(s);
  const Tensor<T, 3> repeated = expand(reshape(x, {outer, 1, inner}), sizes);
  return with_shape<op::reshape, R>(repeated, s);
}

}  // namespace detail

/// x repeated times[i] times along axis i; counts beyond x's axes belong to new axes in front.
/// Negative counts, or too many elements, are a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> repeat(const Tensor<T, R>& x, const Size (&times)[N],
                                                caller loc = here()) {
  constexpr int rank = static_cast<int>(N);
  static_assert(rank >= R, "xla::repeat: give a count for every axis of x, or more; see tile");
  const detail::shape counts = detail::to_counts(times, {"repeat", loc}, 0), from = x.dims();
  detail::shape s;
  for (int i = 0; i < rank - R; ++i) s.push(1);
  for (int i = 0; i < R; ++i) s.push(from[i]);
  Tensor<T, rank> y = detail::with_shape<op::reshape, rank>(x, s);
  for (int i = rank - 1; i >= 0; --i)
    y = detail::repeat_from(y, i, i, Size(counts[i], detail::table_of(times)), {"repeat", loc});
  return y;
}

/// Like repeat, but missing counts belong to the first axes and are 1.
template <class T, int R, std::size_t N>
constexpr Tensor<T, (static_cast<int>(N) > R ? static_cast<int>(N) : R)> tile(
    const Tensor<T, R>& x, const Size (&times)[N], caller loc = here()) {
  if constexpr (static_cast<int>(N) >= R) return repeat(x, times, loc);
  else {
    Size all[R];
    for (std::size_t i = 0; i < R; ++i) all[i] = i < R - N ? Size(1) : times[i - (R - N)];
    return repeat(x, all, loc);
  }
}

/// Repeats every element along an axis `times` times. An axis that does not exist, or negative
/// times, is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> repeat_interleave(const Tensor<T, R>& x, Size times, int axis,
                                         caller loc = here()) {
  static_assert(R != 0, "xla::repeat_interleave: a tensor without axes has none to repeat along");
  const int at = axis < 0 ? axis + R : axis;
  if (at < 0 || at >= R) {
    detail::size_scope{x.table(), {"repeat_interleave", loc}}.fail(detail::text("no axis ")
                                                                   << axis);
    return x;
  }
  const Size counts[] = {times};
  const detail::call_site site{"repeat_interleave", loc};
  return detail::repeat_from(x, at + 1, at, {detail::to_counts(counts, site, 0)[0], times.table()},
                             site);
}

}  // namespace xla
