// SPDX-License-Identifier: Apache-2.0
#pragma once

// Losses of margins, and distances, as modules. Not in xla.hpp.

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/derived/distance.hpp"
#include "xla/op/derived/margin_loss.hpp"
#include "xla/op/derived/pairwise.hpp"
#include "xla/op/derived/ranking_loss.hpp"

namespace xla::nn {

/// The cosine of the angle between vectors along an axis; see cosine_similarity().
struct CosineSimilarity {
  int dim = 1;
  double eps = 1e-8;

  template <class T, int A, int B>
  constexpr auto operator()(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                            caller loc = here()) const {
    return cosine_similarity(x1, x2, dim, eps, loc);
  }
  XLA_HEADER_MODULE(dim, eps)
};

/// triplet_margin_loss as a module: nn::TripletMarginLoss{{.margin = 0.5}}.
struct TripletMarginLoss {
  Scalar margin = 1, eps = 1e-6;
  double p = 2;
  bool swap = false;

  constexpr TripletMarginLoss() = default;
  constexpr explicit TripletMarginLoss(const TripletMarginOptions& o)
      : margin(o.margin), eps(o.eps), p(o.p), swap(o.swap) {
    check_options("nn::TripletMarginLoss", {{"margin", margin.value()}, {"p", p}});
  }
  template <class T, int A, int B, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& anchor, const Tensor<T, B>& positive,
                            const Tensor<T, C>& negative, Reduction reduction = {},
                            caller loc = here()) const {
    const TripletMarginOptions options{margin, p, eps, swap};
    return triplet_margin_loss(anchor, positive, negative, options, reduction, loc);
  }
  XLA_HEADER_MODULE(margin, eps, p, swap)
};

/// margin_ranking_loss as a module.
struct MarginRankingLoss {
  Scalar margin = 0;
  template <class T, int A, int B, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                            const Tensor<T, C>& target, Reduction reduction = {},
                            caller loc = here()) const {
    return margin_ranking_loss(x1, x2, target, margin, reduction, loc);
  }
  XLA_HEADER_MODULE(margin)
};

/// cosine_embedding_loss as a module.
struct CosineEmbeddingLoss {
  Scalar margin = 0;
  template <class T, int A, int B, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                            const Tensor<T, C>& target, Reduction reduction = {},
                            caller loc = here()) const {
    return cosine_embedding_loss(x1, x2, target, margin, reduction, loc);
  }
  XLA_HEADER_MODULE(margin)
};

/// pairwise_distance as a module.
struct PairwiseDistance {
  double p = 2, eps = 1e-6;

  template <class T, int A, int B>
  constexpr auto operator()(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                            caller loc = here()) const {
    return pairwise_distance(x1, x2, p, eps, loc);
  }
  XLA_HEADER_MODULE(p, eps)
};

/// hinge_embedding_loss as a module.
struct HingeEmbeddingLoss {
  double margin = 1;
  template <class T, int A, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& x, const Tensor<T, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return hinge_embedding_loss(x, target, margin, reduction, loc);
  }
  XLA_HEADER_MODULE(margin)
};

/// soft_margin_loss as a module.
struct SoftMarginLoss {
  template <class T, int A, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& x, const Tensor<T, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return soft_margin_loss(x, target, reduction, loc);
  }
};

/// multilabel_soft_margin_loss as a module.
struct MultiLabelSoftMarginLoss {
  template <class T, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, 2>& x, const Tensor<T, 2>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return multilabel_soft_margin_loss(x, target, reduction, loc);
  }
};

/// multilabel_margin_loss as a module.
struct MultiLabelMarginLoss {
  template <class T, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, 2>& x, const Tensor<std::int64_t, 2>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    return multilabel_margin_loss(x, target, reduction, loc);
  }
};

/// multi_margin_loss as a module.
struct MultiMarginLoss {
  double p = 1;
  Scalar margin = 1;
  template <class T, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, 2>& x, const Tensor<std::int64_t, 1>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    const MultiMarginOptions how{p, margin};
    return multi_margin_loss(x, target, how, reduction, loc);
  }
  XLA_HEADER_MODULE(p, margin)
};

/// triplet_margin_with_distance_loss as a module, by any distance:
/// nn::TripletMarginWithDistanceLoss<nn::PairwiseDistance>.
template <class Distance = PairwiseDistance>
struct TripletMarginWithDistanceLoss {
  Distance distance{};
  Scalar margin = 1;
  bool swap = false;

  template <class T, int R, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, R>& anchor, const Tensor<T, R>& positive,
                            const Tensor<T, R>& negative, Reduction reduction = {}) const {
    const TripletDistanceOptions how{margin, swap};
    return triplet_margin_with_distance_loss(anchor, positive, negative, distance, how, reduction);
  }
  XLA_MODULE(distance, margin, swap)
};

}  // namespace xla::nn
