// SPDX-License-Identifier: Apache-2.0
#pragma once

// cosine_similarity(), composed of other ops. Norms of differences are in pairwise.hpp.

#include "xla/op/derived/norm.hpp"
#include "xla/op/minmax.hpp"

namespace xla {

/// The cosine of the angle between vectors along an axis of x1 and x2, which otherwise broadcast:
/// sums of products over the product of the lengths, each of which is at least eps. Sizes that do
/// not broadcast, or an axis that does not exist, are a shape_error.
template <class T, int A, int B, int R = detail::broadcast_rank(A, B)>
constexpr Tensor<T, R - (R > 0)> cosine_similarity(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                                                   int axis = 1, double eps = 1e-8,
                                                   caller loc = here()) {
  static_assert(floating_type<T>, "xla::cosine_similarity: needs float or double; cast first");
  static_assert(A > 0 && B > 0, "xla::cosine_similarity: needs vectors, tensors with axes");
  const detail::call_site site{"cosine_similarity", loc};
  const detail::size_scope scope{x1.table() ? x1.table() : x2.table(), site};
  int at = detail::axis_of(x1, R, axis, site) - R;  // from the end, where broadcasting begins
  if (A + at < 0 || B + at < 0) {
    scope.fail(detail::text("tensors of shape ")
               << x1.dims() << " and " << x2.dims() << ": only one has axis " << axis);
    at = -1;
  }
  if (detail::extent n = x1.dims()[A + at]; !scope.equal(n, x2.dims()[B + at]))
    scope.fail(detail::text("vectors of different sizes along axis ")
               << axis << " of " << x1.dims() << " and " << x2.dims());
  const auto one = x1 / maximum(norm(x1, {at}, keepdim, loc), eps);
  const auto two = x2 / maximum(norm(x2, {at}, keepdim, loc), eps);
  return sum(detail::map_binary<op::mul, T>(one, two, loc), {at}, loc);
}

/// The distances by the p-norm between all vectors of x1 (..., n, d) and of x2 (..., m, d): (...,
/// n, m); leading axes broadcast. It uses the differences for every p, so that near vectors lose no
/// accuracy; eager mode needs n m d numbers temporarily. The gradient of a distance of 0 is 0.
/// Vectors of several sizes are a shape_error.
template <class T, int A, int B>
constexpr Tensor<T, detail::broadcast_rank(A, B)> cdist(const Tensor<T, A>& x1,
                                                        const Tensor<T, B>& x2, double p = 2,
                                                        caller loc = here()) {
  static_assert(floating_type<T>, "xla::cdist: needs float or double; cast first");
  static_assert(A >= 2 && B >= 2, "xla::cdist: needs two tensors of vectors, (..., n, d)");
  static_assert(A < detail::max_rank && B < detail::max_rank,
                "xla::cdist: a tensor of distances has at most 5 axes");
  const detail::size_scope scope{x1.table() ? x1.table() : x2.table(), {"cdist", loc}};
  if (detail::extent d = x1.dims()[A - 1]; !scope.equal(d, x2.dims()[B - 1]))
    scope.fail(detail::text("vectors of different sizes, the last axes of ")
               << x1.dims() << " and " << x2.dims());
  if (!(p >= 0)) scope.fail("p is 0 or more, or infinity");
  return norm(detail::map_binary<op::sub, T>(unsqueeze(x1, -2), unsqueeze(x2, -3), loc), p, {-1},
              loc);
}

}  // namespace xla
