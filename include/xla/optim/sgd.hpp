// SPDX-License-Identifier: Apache-2.0
#pragma once

// SGD with momentum. optimizer.hpp has the loop over parameters; here is the rule of one, and its
// options.

#include "xla/op/logical.hpp"
#include "xla/op/where.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of SGD, by PyTorch's names.
struct SGDOptions {
  Scalar lr = 1e-3;
  Scalar momentum = 0;
  Scalar dampening = 0;
  Scalar weight_decay = 0;
  Scalar nesterov = false;

  static constexpr int states = 1;
  template <class T>
  struct shared {
    Tensor<T, 0> fresh, velocity_rate, gradient_rate;
  };
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>& count) const {
    const auto rate = lr.as<T>(), kept = momentum.as<T>();
    const auto ahead = nesterov.as<T>() != 0;
    // The first velocity is the gradient itself, and without momentum every one is.
    const auto undamped = count == 1 || kept == 0;
    return {where(undamped, 1, 1 - dampening.as<T>()), where(ahead, rate * kept, rate),
            where(ahead, rate, 0)};
  }
  /// v = momentum v + (1 - dampening) (g + weight_decay p), then p -= lr v; with nesterov
  /// p -= lr (g + weight_decay p + momentum v). Sutskever et al. (2013), PyTorch's form.
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto& velocity) const {
    const auto old = p.detach();
    const auto g = gradient + old * weight_decay;
    velocity.copy_(velocity.detach() * momentum + g * s.fresh);
    p.copy_(old - velocity.detach() * s.velocity_rate - g * s.gradient_rate);
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  [[gnu::cold]] void check() const {
    check_options<In>("optim::SGD", {{"lr", lr.value()},
                                     {"momentum", momentum.value()},
                                     {"weight_decay", weight_decay.value()}});
    if (nesterov.value() != 0 && (momentum.value() == 0 || dampening.value() != 0))
      throw runtime_error("optim::SGD: nesterov needs a momentum above 0 and no dampening");
  }
  XLA_HEADER_MODULE(lr, momentum, dampening, weight_decay, nesterov)
};

/// Stochastic gradient descent with momentum, Nesterov's too, and weight decay.
template <class Model>
struct SGD : Optimizer<Model, SGDOptions> {
  using Optimizer<Model, SGDOptions>::Optimizer;
};
template <class Model, class... G>
SGD(Model&&, SGDOptions, G...) -> SGD<optimized<Model, G...>>;
template <class Model>
SGD(Model&&) -> SGD<optimized<Model>>;
template <class... A>
SGD(A&&...) -> SGD<not_a_model<A...>>;

}  // namespace xla::optim
