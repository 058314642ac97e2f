// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lion. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/op/sign.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of Lion.
struct LionOptions {
  Scalar lr = 1e-4;
  Scalar beta1 = 0.9;
  Scalar beta2 = 0.99;
  Scalar weight_decay = 0;

  static constexpr int states = 1;
  /// The factor of a parameter after decay.
  template <class T>
  constexpr Tensor<T, 0> begin(const Tensor<T, 0>&) const {
    return 1 - lr.as<T>() * weight_decay;
  }
  /// Chen et al. (2023), program 1.
  constexpr void update(const auto& decay, auto& p, const auto& gradient, auto& mean) const {
    using T = typename std::remove_cvref_t<decltype(gradient)>::value_type;
    const auto old = mean.detach();
    const auto direction = sign(old * beta1 + gradient * (1 - beta1.as<T>()));
    p.copy_(p.detach() * decay - direction * lr);
    mean.copy_(old * beta2 + gradient * (1 - beta2.as<T>()));
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::Lion", {{"lr", lr.value()},
                                      {"beta1", beta1.value(), 0, 1, true},
                                      {"beta2", beta2.value(), 0, 1, true},
                                      {"weight_decay", weight_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, beta1, beta2, weight_decay)
};

/// Steps of one size, in the direction of the sign of a running mean of gradients.
template <class Model>
struct Lion : Optimizer<Model, LionOptions> {
  using Optimizer<Model, LionOptions>::Optimizer;
};
template <class Model, class... G>
Lion(Model&&, LionOptions, G...) -> Lion<optimized<Model, G...>>;
template <class Model>
Lion(Model&&) -> Lion<optimized<Model>>;
template <class... A>
Lion(A&&...) -> Lion<not_a_model<A...>>;

}  // namespace xla::optim
