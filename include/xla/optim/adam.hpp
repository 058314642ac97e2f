// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/exponential.hpp"
#include "xla/op/root.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// What Adam and AdamW share of a step: 1 - beta^count corrects moments that began at 0, and
/// 1 - beta is the share of what is new in them.
template <class T>
struct adam_step {
  Tensor<T, 0> step_size, root_correction, mean_share, square_share;
};
template <class T>
constexpr adam_step<T> begin_adam(const Scalar& lr, const Scalar& beta1, const Scalar& beta2,
                                  const Tensor<T, 0>& count) {
  const auto bias1 = 1 - exp(log(beta1.as<T>()) * count);
  const auto bias2 = 1 - exp(log(beta2.as<T>()) * count);
  return {lr.as<T>() / bias1, sqrt(bias2), 1 - beta1.as<T>(), 1 - beta2.as<T>()};
}
/// The moments' new values, in place; then what a parameter changes by.
constexpr auto adam_change(const auto& s, const Scalar& beta1, const Scalar& beta2,
                           const Scalar& eps, const auto& g, auto& mean, auto& square) {
  mean.copy_(mean.detach() * beta1 + g * s.mean_share);
  square.copy_(square.detach() * beta2 + g * g * s.square_share);
  const auto root = sqrt(square.detach()) / s.root_correction + eps;
  return mean.detach() / root * s.step_size;
}

/// Hyper-parameters of Adam, by PyTorch's names.
struct AdamOptions {
  Scalar lr = 1e-3;
  Scalar beta1 = 0.9;
  Scalar beta2 = 0.999;
  Scalar eps = 1e-8;
  Scalar weight_decay = 0;

  static constexpr int states = 2;
  template <class T>
  constexpr adam_step<T> begin(const Tensor<T, 0>& count) const {
    return begin_adam(lr, beta1, beta2, count);
  }
  /// Kingma and Ba (2015), algorithm 1.
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto& mean,
                        auto& square) const {
    const auto old = p.detach();
    const auto g = gradient + old * weight_decay;
    p.copy_(old - adam_change(s, beta1, beta2, eps, g, mean, square));
  }
  XLA_HEADER_MODULE(lr, beta1, beta2, eps, weight_decay)
};

/// Adam; its weight decay is part of the gradient.
template <class Model>
struct Adam : Optimizer<Model, AdamOptions> {
  using Optimizer<Model, AdamOptions>::Optimizer;
};
template <class Model, class... G>
Adam(Model&&, AdamOptions, G...) -> Adam<xla::detail::optimized<Model, G...>>;
template <class Model>
Adam(Model&&) -> Adam<xla::detail::optimized<Model>>;

}  // namespace xla::optim
