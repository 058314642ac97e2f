// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adadelta. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/op/root.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of Adadelta, by PyTorch's names.
struct AdadeltaOptions {
  Scalar lr = 1;
  Scalar rho = 0.9;
  Scalar eps = 1e-6;
  Scalar weight_decay = 0;

  static constexpr int states = 2;
  /// The weight of new values in both averages.
  template <class T>
  constexpr Tensor<T, 0> begin(const Tensor<T, 0>&) const {
    return 1 - rho.as<T>();
  }
  /// Zeiler (2012), algorithm 1.
  constexpr void update(const auto& fresh, auto& p, const auto& gradient, auto& square,
                        auto& change) const {
    const auto old = p.detach();
    const auto g = gradient + old * weight_decay;
    square.copy_(square.detach() * rho + g * g * fresh);
    const auto before = change.detach();
    const auto delta = sqrt(before + eps) / sqrt(square.detach() + eps) * g;
    change.copy_(before * rho + delta * delta * fresh);
    p.copy_(old - delta * lr);
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::Adadelta", {{"lr", lr.value()},
                                          {"rho", rho.value(), 0, 1},
                                          {"eps", eps.value()},
                                          {"weight_decay", weight_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, rho, eps, weight_decay)
};

/// Gradients times the root mean square of recent changes, divided by that of recent gradients.
template <class Model>
struct Adadelta : Optimizer<Model, AdadeltaOptions> {
  using Optimizer<Model, AdadeltaOptions>::Optimizer;
};
template <class Model, class... G>
Adadelta(Model&&, AdadeltaOptions, G...) -> Adadelta<optimized<Model, G...>>;
template <class Model>
Adadelta(Model&&) -> Adadelta<optimized<Model>>;
template <class... A>
Adadelta(A&&...) -> Adadelta<not_a_model<A...>>;

}  // namespace xla::optim
