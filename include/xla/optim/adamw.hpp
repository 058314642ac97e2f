// SPDX-License-Identifier: Apache-2.0
#pragma once

// AdamW. optimizer.hpp has the loop over parameters; the step is Adam's.

#include "xla/optim/adam.hpp"

namespace xla::optim {

/// Hyper-parameters of AdamW, by PyTorch's names.
struct AdamWOptions {
  Scalar lr = 1e-3;
  Scalar beta1 = 0.9;
  Scalar beta2 = 0.999;
  Scalar eps = 1e-8;
  Scalar weight_decay = 1e-2;

  static constexpr int states = 2;
  template <class T>
  struct shared {
    adam_step<T> adam;
    Tensor<T, 0> decay;
  };
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>& count) const {
    return {begin_adam(lr, beta1, beta2, eps, count), 1 - lr.as<T>() * weight_decay};
  }
  /// Loshchilov and Hutter (2019), algorithm 2.
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto&... moments) const {
    const auto change = adam_change(s.adam, beta1, beta2, gradient, moments...);
    p.copy_(p.detach() * s.decay - change);
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::AdamW", {{"lr", lr.value()},
                                       {"beta1", beta1.value(), 0, 1, true},
                                       {"beta2", beta2.value(), 0, 1, true},
                                       {"eps", eps.value()},
                                       {"weight_decay", weight_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, beta1, beta2, eps, weight_decay)
};

/// Adam with decoupled weight decay.
template <class Model, class Rule = AdamWOptions>
struct AdamW : Optimizer<Model, Rule> {
  using Optimizer<Model, Rule>::Optimizer;
  template <class M, class... G>
    requires(!std::is_same_v<Rule, AdamWOptions>)
  constexpr AdamW(M&& model, const AdamWOptions& o, amsgrad_t, const G&... groups)
      : Optimizer<Model, Rule>(model, Rule(o), groups...) {}
};
template <class Model, class... G>
AdamW(Model&&, AdamWOptions, amsgrad_t, G...)
    -> AdamW<optimized<Model, G...>, Amsgrad<AdamWOptions>>;
template <class Model, class... G>
AdamW(Model&&, AdamWOptions, G...) -> AdamW<optimized<Model, G...>>;
template <class Model>
AdamW(Model&&) -> AdamW<optimized<Model>>;
template <class... A>
AdamW(A&&...) -> AdamW<not_a_model<A...>>;

}  // namespace xla::optim
