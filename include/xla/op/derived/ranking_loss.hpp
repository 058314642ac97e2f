// SPDX-License-Identifier: Apache-2.0
#pragma once

// triplet_margin_loss(), margin_ranking_loss() and cosine_embedding_loss().

#include "xla/op/clip.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/root.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// Options of triplet_margin_loss, by PyTorch's names.
struct TripletMarginOptions {
  Scalar margin = 1;
  double p = 2;  ///< of the norm
  Scalar eps = 1e-6;
  bool swap = false;  ///< uses the negative's distance from the positive if that is smaller
};

/// relu(margin + d(anchor, positive) - d(anchor, negative)) of vectors (..., d), where d is the
/// p-norm of the difference plus eps. Different sizes are a shape_error. Balntas et al. (2016).
template <class T, int A, int B, int C, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto triplet_margin_loss(const Tensor<T, A>& anchor, const Tensor<T, B>& positive,
                                   const Tensor<T, C>& negative,
                                   const TripletMarginOptions& options = {},
                                   Reduction reduction = {}, caller loc = here()) {
  static_assert(A > 0, "xla::triplet_margin_loss: needs vectors, tensors with axes");
  const detail::call_site site{"triplet_margin_loss", loc};
  detail::check_same_sizes(anchor, positive, site);
  detail::check_same_sizes(anchor, negative, site);
  const auto distance = [&](const Tensor<T, A>& a, const Tensor<T, A>& b) {
    return norm(a - b + options.eps, options.p, {-1}, loc);
  };
  auto far = distance(anchor, negative);
  if (options.swap) far = minimum(far, distance(positive, negative));
  return detail::reduce_loss(relu(distance(anchor, positive) - far + options.margin), reduction);
}

/// relu(margin - target (x1 - x2)): target is 1 where x1 should be larger, and -1 where x2 should.
/// Different sizes are a shape_error.
template <class T, int A, int B, int C, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto margin_ranking_loss(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                                   const Tensor<T, C>& target, detail::number_of<T> margin = 0,
                                   Reduction reduction = {}, caller loc = here()) {
  const detail::call_site site{"margin_ranking_loss", loc};
  detail::check_same_sizes(x1, x2, site);
  detail::check_same_sizes(x1, target, site);
  return detail::reduce_loss(relu(margin - target * (x1 - x2)), reduction);
}

/// Of vectors (batch, d), or of two vectors (d): 1 - cos where target is 1, and relu(cos - margin)
/// where it is -1. Different sizes are a shape_error.
template <class T, int A, int B, int C, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto cosine_embedding_loss(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                                     const Tensor<T, C>& target, detail::number_of<T> margin = 0,
                                     Reduction reduction = {}, caller loc = here()) {
  static_assert((A == 1 || A == 2) && C == A - 1,
                "xla::cosine_embedding_loss: needs vectors (batch, d) and targets (batch), or "
                "vectors (d) and a target without axes");
  const detail::call_site site{"cosine_embedding_loss", loc};
  detail::check_same_sizes(x1, x2, site);
  const auto square = [&](const auto& x) { return sum(x * x, {-1}, loc) + 1e-12; };  // PyTorch's
  const auto cosine = sum(x1 * x2, {-1}, loc) / sqrt(square(x1) * square(x2));
  detail::check_same_sizes(cosine, target, site);
  return detail::reduce_loss(
      where(target == 1, 1 - cosine, where(target == -1, relu(cosine - margin), 0)), reduction);
}

}  // namespace xla
