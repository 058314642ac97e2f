// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adagrad. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/op/root.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of Adagrad, by PyTorch's names.
struct AdagradOptions {
  Scalar lr = 1e-2;
  Scalar lr_decay = 0;
  Scalar weight_decay = 0;
  Scalar initial_accumulator_value = 0;
  Scalar eps = 1e-10;

  static constexpr int states = 1;
  /// The rate of this step.
  template <class T>
  constexpr Tensor<T, 0> begin(const Tensor<T, 0>& count) const {
    return lr.as<T>() / (1 + (count - 1) * lr_decay);
  }
  /// Duchi, Hazan, Singer (2011).
  constexpr void update(const auto& rate, auto& p, const auto& gradient, auto& total) const {
    const auto old = p.detach();
    const auto g = gradient + old * weight_decay;
    total.copy_(total.detach() + g * g);
    p.copy_(old - g / (sqrt(total.detach() + initial_accumulator_value) + eps) * rate);
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::Adagrad",
                      {{"lr", lr.value()},
                       {"lr_decay", lr_decay.value()},
                       {"weight_decay", weight_decay.value()},
                       {"initial_accumulator_value", initial_accumulator_value.value()},
                       {"eps", eps.value()}});
  }
  XLA_HEADER_MODULE(lr, lr_decay, weight_decay, initial_accumulator_value, eps)
};

/// Gradients divided by the root of the sum of their squares so far.
template <class Model>
struct Adagrad : Optimizer<Model, AdagradOptions> {
  using Optimizer<Model, AdagradOptions>::Optimizer;
};
template <class Model, class... G>
Adagrad(Model&&, AdagradOptions, G...) -> Adagrad<optimized<Model, G...>>;
template <class Model>
Adagrad(Model&&) -> Adagrad<optimized<Model>>;
template <class... A>
Adagrad(A&&...) -> Adagrad<not_a_model<A...>>;

}  // namespace xla::optim
