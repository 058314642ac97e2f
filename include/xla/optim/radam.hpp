// SPDX-License-Identifier: Apache-2.0
#pragma once

// RAdam. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/base/dependent.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/root.hpp"
#include "xla/op/where.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of RAdam, by PyTorch's names.
struct RAdamOptions {
  Scalar lr = 1e-3;
  Scalar beta1 = 0.9;
  Scalar beta2 = 0.999;
  Scalar eps = 1e-8;
  Scalar weight_decay = 0;
  Scalar decoupled_weight_decay = false;

  static constexpr int states = 2;
  template <class T>
  struct shared {
    Tensor<T, 0> step_size, rectification, mean_share, square_share, kept, penalty;
    Tensor<bool, 0> rectified;
  };
  /// In double: cancellation leaves few digits of the length of the average, which decides the
  /// step.
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>& count) const {
    using real = dependent<T, double>;
    const auto n = cast<real>(count), fresh = 1 - beta2.as<real>();
    const auto power = exp(log(beta2.as<real>()) * n), bias2 = 1 - power;
    const auto bias1 = 1 - exp(log(beta1.as<real>()) * n);
    const auto most = 2 / fresh - 1, length = most - n * power * 2 / bias2;
    const auto square = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length);
    const auto decay = weight_decay.as<real>(), rate = lr.as<real>();
    const auto decoupled = decoupled_weight_decay.as<real>() != 0;
    return {cast<T>(rate / bias1),
            cast<T>(sqrt(square * bias2)),
            cast<T>(1 - beta1.as<real>()),
            cast<T>(fresh),
            cast<T>(where(decoupled, 1 - rate * decay, 1)),
            cast<T>(where(decoupled, 0, decay)),
            length > 5};
  }
  /// Liu et al. (2020), algorithm 2.
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto& mean,
                        auto& square) const {
    const auto old = p.detach();
    const auto g = gradient + old * s.penalty;
    mean.copy_(mean.detach() * beta1 + g * s.mean_share);
    square.copy_(square.detach() * beta2 + g * g * s.square_share);
    const auto factor = where(s.rectified, s.rectification / (sqrt(square.detach()) + eps), 1);
    p.copy_(old * s.kept - mean.detach() * s.step_size * factor);
  }
  template <class In = void>
  void check() const {
    check_options<In>("optim::RAdam", {{"lr", lr.value()},
                                       {"beta1", beta1.value(), 0, 1, true},
                                       {"beta2", beta2.value(), 0, 1, true},
                                       {"eps", eps.value()},
                                       {"weight_decay", weight_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay)
};

/// Adam that omits the second moment until enough steps make its estimate reliable.
template <class Model>
struct RAdam : Optimizer<Model, RAdamOptions> {
  using Optimizer<Model, RAdamOptions>::Optimizer;
};
template <class Model, class... G>
RAdam(Model&&, RAdamOptions, G...) -> RAdam<optimized<Model, G...>>;
template <class Model>
RAdam(Model&&) -> RAdam<optimized<Model>>;

}  // namespace xla::optim
