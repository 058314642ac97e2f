// SPDX-License-Identifier: Apache-2.0
#pragma once

// Helpers of functions that reduce over all axes or some, and may keep these. Other derived
// functions include it; programs do not.

#include "xla/op/reduce.hpp"

namespace xla::detail {

// The common part of composed reductions: f(x, axes) returns the result with its axes kept, f.name
// is the name for errors.

template <class T, int R, class F>
constexpr auto over_all(const Tensor<T, R>& x, const F& f) {
  const auto all = axis_set::range(0, R);
  const auto y = f(x, all);
  return drop_axes<0, typename std::remove_cvref_t<decltype(y)>::value_type>(y, all);
}
template <class T, int R, std::size_t N, class F>
constexpr auto over_axes(const Tensor<T, R>& x, const int (&axes)[N], const F& f, caller loc) {
  static_assert(static_cast<int>(N) <= R, "xla: a reduction names more axes than the tensor has");
  const axis_set all = axes_of(x, R, axes, {F::name, loc});
  const auto y = f(x, all);
  return drop_axes<R - static_cast<int>(N), typename std::remove_cvref_t<decltype(y)>::value_type>(
      y, all);
}
template <class T, int R, std::size_t N, class F>
constexpr auto over_axes_keepdim(const Tensor<T, R>& x, const int (&axes)[N], const F& f,
                                 caller loc) {
  return f(x, axes_of(x, R, axes, {F::name, loc}));
}

/// The number of elements along some axes.
template <class T, int R>
constexpr Size count_over(const Tensor<T, R>& x, axis_set axes) {
  Size n = 1;
  for (int i = 0; i < R; ++i)
    if (axes.has(i)) n = n * x.size(i);
  return n;
}

}  // namespace xla::detail
