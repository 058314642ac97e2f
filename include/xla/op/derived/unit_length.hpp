// SPDX-License-Identifier: Apache-2.0
#pragma once

// normalize() and renorm(): vectors scaled by their norm.

#include "xla/op/derived/norm.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// Vectors along an axis divided by their p-norm, or by eps if that is larger: torch's
/// functional.normalize. An axis that does not exist is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> normalize(const Tensor<T, R>& x, double p = 2, int axis = 1,
                                 double eps = 1e-12, caller loc = here()) {
  static_assert(floating_type<T>, "xla::normalize: needs float or double; cast first");
  static_assert(R > 0, "xla::normalize: needs vectors, a tensor with axes");
  return x / maximum(norm(x, p, {axis}, keepdim, loc), eps);
}

/// x with each slice along an axis whose p-norm exceeds maxnorm scaled down to that.
template <class T, int R>
constexpr Tensor<T, R> renorm(const Tensor<T, R>& x, double p, int axis, double maxnorm,
                              caller loc = here()) {
  static_assert(floating_type<T> && R > 1,
                "xla::renorm: needs two axes or more of float or double");
  const int at = detail::axis_of(x, R, axis, {"renorm", loc});
  int others[R - 1] = {};
  for (int i = 0, n = 0; i < R; ++i)
    if (i != at) others[n++] = i;
  const auto length = norm(x, p, others, keepdim, loc);
  return x * where(length > maxnorm, maxnorm / (length + 1e-7), 1);
}

}  // namespace xla
