// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adamax. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/op/abs.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/minmax.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of Adamax, by PyTorch's names.
struct AdamaxOptions {
  Scalar lr = 2e-3;
  Scalar beta1 = 0.9;
  Scalar beta2 = 0.999;
  Scalar eps = 1e-8;
  Scalar weight_decay = 0;

  static constexpr int states = 2;
  template <class T>
  struct shared {
    Tensor<T, 0> step_size, mean_share;
  };
  /// 1 - beta1^count corrects a mean that began at 0.
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>& count) const {
    return {lr.as<T>() / (1 - exp(log(beta1.as<T>()) * count)), 1 - beta1.as<T>()};
  }
  /// Kingma and Ba (2015), algorithm 2.
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto& mean,
                        auto& largest) const {
    const auto old = p.detach();
    const auto g = gradient + old * weight_decay;
    mean.copy_(mean.detach() * beta1 + g * s.mean_share);
    largest.copy_(maximum(largest.detach() * beta2, abs(g) + eps));
    p.copy_(old - mean.detach() / largest.detach() * s.step_size);
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::Adamax", {{"lr", lr.value()},
                                        {"beta1", beta1.value(), 0, 1, true},
                                        {"beta2", beta2.value(), 0, 1, true},
                                        {"eps", eps.value()},
                                        {"weight_decay", weight_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, beta1, beta2, eps, weight_decay)
};

/// Adam that divides by the largest recent gradient instead of the root mean square.
template <class Model>
struct Adamax : Optimizer<Model, AdamaxOptions> {
  using Optimizer<Model, AdamaxOptions>::Optimizer;
};
template <class Model, class... G>
Adamax(Model&&, AdamaxOptions, G...) -> Adamax<optimized<Model, G...>>;
template <class Model>
Adamax(Model&&) -> Adamax<optimized<Model>>;
template <class... A>
Adamax(A&&...) -> Adamax<not_a_model<A...>>;

}  // namespace xla::optim
