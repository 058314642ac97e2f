// SPDX-License-Identifier: Apache-2.0
#pragma once

// pairwise_distance(), pdist(), and the triplet loss with any distance.

#include "xla/op/derived/combinations.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/relu.hpp"

namespace xla {

/// The p-norm of x - y + eps of vectors (…, d), broadcast: (…). Sizes that do not broadcast are a
/// shape_error.
template <class T, int A, int B>
constexpr auto pairwise_distance(const Tensor<T, A>& x, const Tensor<T, B>& y, double p = 2,
                                 double eps = 1e-6, caller loc = here()) {
  return norm(detail::map_binary<op::sub, T>(x, y, loc) + eps, p, {-1}, loc);
}

/// The p-norms of the differences of all pairs of the n vectors (n, d), in the order of
/// combinations(): (n (n - 1) / 2). The number of vectors is one that the compiler knows.
template <class T>
constexpr Tensor<T, 1> pdist(const Tensor<T, 2>& x, double p = 2, caller loc = here()) {
  static_assert(floating_type<T>, "xla::pdist: needs float or double; cast first");
  const std::int64_t n = x.size(0);
  const auto pairs = detail::triangle_indices(n, n, 1, true, x.table());
  return norm(
      index_select(x, 0, select(pairs, 0, 0), loc) - index_select(x, 0, select(pairs, 0, 1), loc),
      p, {-1}, loc);
}

/// How triplet_margin_with_distance_loss compares, by PyTorch's names.
struct TripletDistanceOptions {
  Scalar margin = 1;
  bool swap = false;  ///< uses the negative's distance from the positive if that is smaller
};
/// relu(margin + d(anchor, positive) - d(anchor, negative)) with any distance of two tensors of
/// vectors, as pairwise_distance().
template <class T, int R, class Distance, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto triplet_margin_with_distance_loss(const Tensor<T, R>& anchor,
                                                 const Tensor<T, R>& positive,
                                                 const Tensor<T, R>& negative,
                                                 const Distance& distance,
                                                 const TripletDistanceOptions& how = {},
                                                 Reduction reduction = {}) {
  auto far = distance(anchor, negative);
  if (how.swap) far = minimum(far, distance(positive, negative));
  return detail::reduce_loss(relu(distance(anchor, positive) - far + how.margin), reduction);
}

}  // namespace xla
