// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/exponential.hpp"
#include "xla/op/root.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of AdamW, by PyTorch's names.
struct AdamWOptions {
  Scalar lr = 1e-3;
  Scalar beta1 = 0.9;
  Scalar beta2 = 0.999;
  Scalar eps = 1e-8;
  Scalar weight_decay = 1e-2;

  static constexpr int states = 2;
  struct shared {
    Tensor<float, 0> step_size, root_correction, decay;
  };
  constexpr shared begin(const Tensor<float, 0>& count) const {
    const auto rate = lr.as<float>();
    const auto bias1 = 1 - exp(log(beta1.as<float>()) * count);
    const auto bias2 = 1 - exp(log(beta2.as<float>()) * count);
    return {rate / bias1, sqrt(bias2), 1 - rate * weight_decay};
  }
  /// Loshchilov and Hutter (2019), algorithm 2.
  constexpr void update(const shared& s, auto& p, const auto& gradient, auto& mean,
                        auto& square) const {
    mean.copy_(mean.detach() * beta1 + gradient * (1 - beta1.as<float>()));
    square.copy_(square.detach() * beta2 + gradient * gradient * (1 - beta2.as<float>()));
    const auto root = sqrt(square.detach()) / s.root_correction + eps;
    p.copy_(p.detach() * s.decay - mean.detach() / root * s.step_size);
  }
  XLA_MODULE(lr, beta1, beta2, eps, weight_decay)
};

/// Adam with decoupled weight decay.
template <class Model>
struct AdamW : Optimizer<Model, AdamWOptions> {
  using Optimizer<Model, AdamWOptions>::Optimizer;
};
template <class Model>
AdamW(Model&, AdamWOptions) -> AdamW<Model>;
template <class Model>
AdamW(Model&) -> AdamW<Model>;
template <class Root, auto Member>
AdamW(Part<Root, Member>, AdamWOptions) -> AdamW<Part<Root, Member>>;
template <class Root, auto Member>
AdamW(Part<Root, Member>) -> AdamW<Part<Root, Member>>;

}  // namespace xla::optim
