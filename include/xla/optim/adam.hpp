// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/exponential.hpp"
#include "xla/op/root.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// What Adam and AdamW share of a step: 1 - beta^count corrects moments that began at 0, and
/// 1 - beta is the share of what is new in them.
struct adam_step {
  Tensor<float, 0> step_size, root_correction, mean_share, square_share;
};
template <class T>
constexpr adam_step begin_adam(const Scalar& lr, const Scalar& beta1, const Scalar& beta2,
                               const Tensor<T, 0>& count) {
  const auto bias1 = 1 - exp(log(beta1.as<T>()) * count);
  const auto bias2 = 1 - exp(log(beta2.as<T>()) * count);
  return {lr.as<T>() / bias1, sqrt(bias2), 1 - beta1.as<T>(), 1 - beta2.as<T>()};
}
/// The moments' new values, in place; then what a parameter changes by.
constexpr auto adam_change(const adam_step& s, const Scalar& beta1, const Scalar& beta2,
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
  constexpr adam_step begin(const Tensor<T, 0>& count) const {
    return begin_adam(lr, beta1, beta2, count);
  }
  /// Kingma and Ba (2015), algorithm 1.
  constexpr void update(const adam_step& s, auto& p, const auto& gradient, auto& mean,
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
template <class Model>
Adam(Model&, AdamOptions) -> Adam<Model>;
template <class Model>
Adam(Model&) -> Adam<Model>;
template <class Root, auto Member>
Adam(Part<Root, Member>, AdamOptions) -> Adam<Part<Root, Member>>;
template <class Root, auto Member>
Adam(Part<Root, Member>) -> Adam<Part<Root, Member>>;

}  // namespace xla::optim
