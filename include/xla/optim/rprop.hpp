// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rprop. optimizer.hpp has the loop over parameters; this is the rule for one, with its options.

#include "xla/op/clip.hpp"
#include "xla/op/sign.hpp"
#include "xla/op/where.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of Rprop, by PyTorch's names. lr is the size of the first step.
struct RpropOptions {
  Scalar lr = 1e-2;
  Scalar etaminus = 0.5;
  Scalar etaplus = 1.2;
  Scalar step_size_min = 1e-6;
  Scalar step_size_max = 50;

  static constexpr int states = 2;
  template <class T>
  struct shared {
    Tensor<T, 0> first, shrink, grow, least, most;
  };
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>&) const {
    return {lr.as<T>(), etaminus.as<T>(), etaplus.as<T>(), step_size_min.as<T>(),
            step_size_max.as<T>()};
  }
  /// Riedmiller and Braun (1993); if the sign has changed, the next step starts afresh.
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto& previous,
                        auto& size) const {
    const auto direction = sign(gradient * previous.detach());
    const auto factor = where(direction > 0, s.grow, where(direction < 0, s.shrink, 1));
    const auto before = where(size.detach() == 0, s.first, size.detach());
    size.copy_(clamp(before * factor, s.least, s.most));
    const auto g = where(direction < 0, 0, gradient);
    p.copy_(p.detach() - sign(g) * size.detach());
    previous.copy_(g);
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::Rprop", {{"lr", lr.value()},
                                       {"etaminus", etaminus.value(), 0, 1, true},
                                       {"etaplus", etaplus.value(), 1},
                                       {"step_size_min", step_size_min.value()},
                                       {"step_size_max", step_size_max.value()}});
    if (!(etaminus.value() > 0 && etaplus.value() > 1))
      throw runtime_error("optim::Rprop: etaminus has to be above 0, and etaplus above 1");
  }
  XLA_HEADER_MODULE(lr, etaminus, etaplus, step_size_min, step_size_max)
};

/// Steps by the signs of gradients alone: each element's step grows while the sign stays and
/// shrinks if it changes. For gradients of the full data set, not of batches.
template <class Model>
struct Rprop : Optimizer<Model, RpropOptions> {
  using Optimizer<Model, RpropOptions>::Optimizer;
};
template <class Model, class... G>
Rprop(Model&&, RpropOptions, G...) -> Rprop<optimized<Model, G...>>;
template <class Model>
Rprop(Model&&) -> Rprop<optimized<Model>>;
template <class... A>
Rprop(A&&...) -> Rprop<not_a_model<A...>>;

}  // namespace xla::optim
