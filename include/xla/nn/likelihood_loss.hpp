// SPDX-License-Identifier: Apache-2.0
#pragma once

// GaussianNLLLoss and PoissonNLLLoss as modules. Not in xla.hpp.

#include "xla/module.hpp"
#include "xla/op/derived/likelihood_loss.hpp"

namespace xla::nn {

/// gaussian_nll_loss as a module.
struct GaussianNLLLoss {
  bool full = false;
  Scalar eps = 1e-6;
  template <class T, int A, int B, int V, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<T, B>& target,
                            const Tensor<T, V>& var, Reduction reduction = {},
                            caller loc = here()) const {
    return gaussian_nll_loss(input, target, var, full, eps, reduction, loc);
  }
  XLA_HEADER_MODULE(full, eps)
};

/// poisson_nll_loss as a module: nn::PoissonNLLLoss{.full = true}.
struct PoissonNLLLoss {
  bool log_input = true, full = false;
  Scalar eps = 1e-8;
  template <class T, int A, int B, class Reduction = reduction::mean_t>
  constexpr auto operator()(const Tensor<T, A>& input, const Tensor<T, B>& target,
                            Reduction reduction = {}, caller loc = here()) const {
    const PoissonNLLOptions options{log_input, full, eps};
    return poisson_nll_loss(input, target, options, reduction, loc);
  }
  XLA_HEADER_MODULE(log_input, full, eps)
};

}  // namespace xla::nn
