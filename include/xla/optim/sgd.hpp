// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of SGD, by PyTorch's names.
struct SGDOptions {
  Scalar lr = 1e-3;
  Scalar momentum = 0;
  Scalar weight_decay = 0;

  static constexpr int states = 1;
  constexpr int begin(const Tensor<float, 0>&) const { return 0; }
  /// v = momentum v + g + weight_decay p; p -= lr v (Sutskever et al. 2013, PyTorch's form).
  constexpr void update(int, auto& p, const auto& gradient, auto& velocity) const {
    const auto old = p.detach();
    velocity.copy_(velocity.detach() * momentum + (gradient + old * weight_decay));
    p.copy_(old - velocity.detach() * lr);
  }
  XLA_MODULE(lr, momentum, weight_decay)
};

/// Stochastic gradient descent with momentum and weight decay.
template <class Model>
struct SGD : Optimizer<Model, SGDOptions> {
  using Optimizer<Model, SGDOptions>::Optimizer;
};
template <class Model>
SGD(Model&, SGDOptions) -> SGD<Model>;
template <class Model>
SGD(Model&) -> SGD<Model>;
template <class Root, auto Member>
SGD(Part<Root, Member>, SGDOptions) -> SGD<Part<Root, Member>>;
template <class Root, auto Member>
SGD(Part<Root, Member>) -> SGD<Part<Root, Member>>;

}  // namespace xla::optim
