// SPDX-License-Identifier: Apache-2.0
#pragma once

// NAdam. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/base/dependent.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/root.hpp"
#include "xla/op/where.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of NAdam, by PyTorch's names.
struct NAdamOptions {
  Scalar lr = 2e-3;
  Scalar beta1 = 0.9;
  Scalar beta2 = 0.999;
  Scalar eps = 1e-8;
  Scalar weight_decay = 0;
  Scalar momentum_decay = 4e-3;
  Scalar decoupled_weight_decay = false;

  static constexpr int states = 2;
  static constexpr const char* shared_states[] = {"mu_product"};
  template <class T>
  struct shared {
    Tensor<T, 0> gradient_rate, mean_rate, mean_share, square_share, bias2, left, penalty;
  };
  /// The momentum mu of a step grows from beta1 / 2 to beta1; the product of all mu corrects the
  /// bias of the mean. In double, because beta2 is close to 1.
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>& count, auto& mu_product) const {
    using real = dependent<T, double>;
    const auto n = cast<real>(count), momentum = beta1.as<real>();
    constexpr double log_base = -0.040821994520255166;  // of 0.96
    const auto mu = [&](const auto& step) {
      return momentum * (1 - exp(step * momentum_decay * log_base) / 2);
    };
    const auto now = mu(n), next = mu(n + 1);
    const auto before = cast<real>(mu_product.detach());
    const auto product = where(n == 1, 1, before) * now;
    mu_product.copy_(cast<T>(product));
    const auto rate = lr.as<real>(), decay = weight_decay.as<real>();
    const auto decoupled = decoupled_weight_decay.as<real>() != 0;
    const auto fresh = 1 - beta2.as<real>();
    return {cast<T>(rate * (1 - now) / (1 - product)),
            cast<T>(rate * next / (1 - product * next)),
            cast<T>(1 - momentum),
            cast<T>(fresh),
            cast<T>(1 - exp(log(beta2.as<real>()) * n)),
            cast<T>(where(decoupled, 1 - rate * decay, 1)),
            cast<T>(where(decoupled, 0, decay))};
  }
  /// Dozat (2016), algorithm 2.
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto& mean,
                        auto& square) const {
    const auto old = p.detach();
    const auto g = gradient + old * s.penalty;
    mean.copy_(mean.detach() * beta1 + g * s.mean_share);
    square.copy_(square.detach() * beta2 + g * g * s.square_share);
    const auto root = sqrt(square.detach() / s.bias2) + eps;
    p.copy_(old * s.left - (g * s.gradient_rate + mean.detach() * s.mean_rate) / root);
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::NAdam", {{"lr", lr.value()},
                                       {"beta1", beta1.value(), 0, 1, true},
                                       {"beta2", beta2.value(), 0, 1, true},
                                       {"eps", eps.value()},
                                       {"weight_decay", weight_decay.value()},
                                       {"momentum_decay", momentum_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay)
};

/// Adam with Nesterov's momentum.
template <class Model>
struct NAdam : Optimizer<Model, NAdamOptions> {
  using Optimizer<Model, NAdamOptions>::Optimizer;
};
template <class Model, class... G>
NAdam(Model&&, NAdamOptions, G...) -> NAdam<optimized<Model, G...>>;
template <class Model>
NAdam(Model&&) -> NAdam<optimized<Model>>;
template <class... A>
NAdam(A&&...) -> NAdam<not_a_model<A...>>;

}  // namespace xla::optim
