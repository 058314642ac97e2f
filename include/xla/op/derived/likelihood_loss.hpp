// SPDX-License-Identifier: Apache-2.0
#pragma once

// gaussian_nll_loss() and poisson_nll_loss().

#include <numbers>

#include "xla/op/clip.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// Minus the logarithm of the target's density under normal distributions with means input and
/// variances var, of input's sizes or with a last axis of size 1: half of log var + (input -
/// target)^2 / var, and with full log(2 pi) too. Variances below eps count as eps, and their
/// gradient is that of eps. Other sizes are a shape_error. Nix and Weigend (1994).
template <class T, int A, int B, int V, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto gaussian_nll_loss(const Tensor<T, A>& input, const Tensor<T, B>& target,
                                 const Tensor<T, V>& var, bool full = false,
                                 detail::number_of<T> eps = 1e-6, Reduction reduction = {},
                                 caller loc = here()) {
  static_assert(V == A || V == 0, "xla::gaussian_nll_loss: var has as many axes as input, or none");
  const detail::call_site site{"gaussian_nll_loss", loc};
  detail::check_same_sizes(input, target, site);
  const auto least = maximum(var.detach(), eps);
  const auto variance = var + (least - var.detach());
  const auto difference = input - target;
  const auto each =
      (log(variance) + detail::map_binary<op::div, T>(difference * difference, variance, loc)) *
      0.5;
  constexpr double constant = 0.91893853320467274;  // log(2 pi) / 2
  return detail::reduce_loss(full ? each + constant : each, reduction);
}

/// What poisson_nll_loss takes, by PyTorch's names.
struct PoissonNLLOptions {
  bool log_input = true;  ///< the input is the rate's logarithm
  bool full = false;      ///< with Stirling's approximation of log target!, above 1
  Scalar eps = 1e-8;      ///< added to a rate before its logarithm
};

/// Minus the logarithm of the target's probability under Poisson distributions: exp(input) - target
/// input, or input - target log(input + eps). Different sizes are a shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto poisson_nll_loss(const Tensor<T, A>& input, const Tensor<T, B>& target,
                                const PoissonNLLOptions& options = {}, Reduction reduction = {},
                                caller loc = here()) {
  detail::check_same_sizes(input, target, {"poisson_nll_loss", loc});
  auto each =
      options.log_input ? exp(input) - target * input : input - target * log(input + options.eps);
  if (options.full) {
    const auto large = target > 1;
    const auto counted = where(large, target, 1);
    const auto stirling =
        counted * log(counted) - counted + log(counted * (2 * std::numbers::pi)) * 0.5;
    each = each + where(large, stirling, 0);
  }
  return detail::reduce_loss(each, reduction);
}

}  // namespace xla
