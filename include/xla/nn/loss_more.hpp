// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/derived/distance.hpp"
#include "xla/op/derived/likelihood_loss.hpp"
#include "xla/op/derived/ranking_loss.hpp"

namespace xla::nn {

/// The cosine of the angle between vectors along an axis; see cosine_similarity().
struct CosineSimilarity {
  int dim = 1;
  double eps = 1e-8;

  template <class T, int A, int B>
  constexpr auto operator()(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                            caller who = here()) const {
    return cosine_similarity(x1, x2, dim, eps, who);
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
                            caller who = here()) const {
    const TripletMarginOptions options{margin, p, eps, swap};
    return triplet_margin_loss(anchor, positive, negative, options, reduction, who);
  }
  XLA_HEADER_MODULE(margin, eps, p, swap)
};

/// margin_ranking_loss as a module.
struct MarginRankingLoss {
  Scalar margin = 0;
  template <class T, int A, int B, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                            const Tensor<T, C>& target, Reduction reduction = {},
                            caller who = here()) const {
    return margin_ranking_loss(x1, x2, target, margin, reduction, who);
  }
  XLA_HEADER_MODULE(margin)
};

/// cosine_embedding_loss as a module.
struct CosineEmbeddingLoss {
  Scalar margin = 0;
  template <class T, int A, int B, int C, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& x1, const Tensor<T, B>& x2,
                            const Tensor<T, C>& target, Reduction reduction = {},
                            caller who = here()) const {
    return cosine_embedding_loss(x1, x2, target, margin, reduction, who);
  }
  XLA_HEADER_MODULE(margin)
};

/// gaussian_nll_loss as a module.
struct GaussianNLLLoss {
  bool full = false;
  Scalar eps = 1e-6;
  template <class T, int A, int B, int V, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<T, B>& target,
                            const Tensor<T, V>& var, Reduction reduction = {},
                            caller who = here()) const {
    return gaussian_nll_loss(input, target, var, full, eps, reduction, who);
  }
  XLA_HEADER_MODULE(full, eps)
};

/// poisson_nll_loss as a module: nn::PoissonNLLLoss{.full = true}.
struct PoissonNLLLoss {
  bool log_input = true, full = false;
  Scalar eps = 1e-8;
  template <class T, int A, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<T, B>& target,
                            Reduction reduction = {}, caller who = here()) const {
    const PoissonNLLOptions options{log_input, full, eps};
    return poisson_nll_loss(input, target, options, reduction, who);
  }
  XLA_HEADER_MODULE(log_input, full, eps)
};

}  // namespace xla::nn
