// SPDX-License-Identifier: Apache-2.0
#pragma once

// RMSprop. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/op/minmax.hpp"
#include "xla/op/root.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of RMSprop, by PyTorch's names.
struct RMSpropOptions {
  Scalar lr = 1e-2;
  Scalar alpha = 0.99;
  Scalar eps = 1e-8;
  Scalar weight_decay = 0;
  Scalar momentum = 0;
  Scalar centered = false;

  static constexpr int states = 3;
  /// 1 if the square of the mean gradient is subtracted, else 0.
  template <class T>
  constexpr Tensor<T, 0> begin(const Tensor<T, 0>&) const {
    return where(centered.as<T>() != 0, T{1}, T{0});
  }
  /// Hinton's lecture 6e (2012); centered: Graves (2013), section 4.2.
  constexpr void update(const auto& center, auto& p, const auto& gradient, auto& square, auto& mean,
                        auto& velocity) const {
    const auto old = p.detach();
    const auto g = gradient + old * weight_decay;
    using T = typename std::remove_cvref_t<decltype(gradient)>::value_type;
    const auto fresh = 1 - alpha.as<T>();
    square.copy_(square.detach() * alpha + g * g * fresh);
    mean.copy_(mean.detach() * alpha + g * fresh);
    const auto m = mean.detach();
    // A variance is not negative, but its rounding may be.
    const auto variance = maximum(square.detach() - m * m * center, 0);
    velocity.copy_(velocity.detach() * momentum + g / (sqrt(variance) + eps));
    p.copy_(old - velocity.detach() * lr);
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::RMSprop", {{"lr", lr.value()},
                                         {"alpha", alpha.value(), 0, 1},
                                         {"eps", eps.value()},
                                         {"weight_decay", weight_decay.value()},
                                         {"momentum", momentum.value()}});
  }
  XLA_HEADER_MODULE(lr, alpha, eps, weight_decay, momentum, centered)
};

/// Gradients divided by their root mean square.
template <class Model>
struct RMSprop : Optimizer<Model, RMSpropOptions> {
  using Optimizer<Model, RMSpropOptions>::Optimizer;
};
template <class Model, class... G>
RMSprop(Model&&, RMSpropOptions, G...) -> RMSprop<optimized<Model, G...>>;
template <class Model>
RMSprop(Model&&) -> RMSprop<optimized<Model>>;
template <class... A>
RMSprop(A&&...) -> RMSprop<not_a_model<A...>>;

}  // namespace xla::optim
