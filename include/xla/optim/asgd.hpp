// SPDX-License-Identifier: Apache-2.0
#pragma once

// ASGD. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/op/minmax.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/where.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of ASGD, by PyTorch's names.
struct ASGDOptions {
  Scalar lr = 1e-2;
  Scalar lambd = 1e-4;
  Scalar alpha = 0.75;
  Scalar t0 = 1e6;
  Scalar weight_decay = 0;

  static constexpr int states = 1;
  static constexpr const char* shared_states[] = {"eta"};
  template <class T>
  struct shared {
    Tensor<T, 0> eta, left, mu;
  };
  /// As in PyTorch, the previous step has set this step's rate, and averages begin after step t0.
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>& count, auto& eta) const {
    const auto rate = lr.as<T>(), now = where(count == 1, rate, eta.detach());
    eta.copy_(rate / pow(1 + rate * count * lambd, alpha.as<T>()));
    return {now, 1 - now * lambd, 1 / maximum(count - 1 - t0, 1)};
  }
  /// Polyak and Juditsky (1992).
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto& average) const {
    const auto old = p.detach();
    const auto g = gradient + old * weight_decay;
    p.copy_(old * s.left - g * s.eta);
    const auto mean = average.detach();
    average.copy_(where(s.mu == 1, p.detach(), mean + (p.detach() - mean) * s.mu));
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::ASGD", {{"lr", lr.value()}, {"weight_decay", weight_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, lambd, alpha, t0, weight_decay)
};

/// Stochastic gradient descent with decreasing steps, which averages the parameters after step t0:
/// visit_state() and a checkpoint contain the averages, "fc1.weight.0".
template <class Model>
struct ASGD : Optimizer<Model, ASGDOptions> {
  using Optimizer<Model, ASGDOptions>::Optimizer;
};
template <class Model, class... G>
ASGD(Model&&, ASGDOptions, G...) -> ASGD<optimized<Model, G...>>;
template <class Model>
ASGD(Model&&) -> ASGD<optimized<Model>>;
template <class... A>
ASGD(A&&...) -> ASGD<not_a_model<A...>>;

}  // namespace xla::optim
