// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adam and AMSGrad, and the part that AdamW shares. optimizer.hpp has the loop over parameters.

#include "xla/op/exponential.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/root.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// The part of a step that Adam and AdamW share: 1 - beta^count corrects moments that began at 0,
/// and 1 - beta is the weight of new values in them. The square root of the second correction, by
/// which each element would be divided, is part of step_size and eps: Kingma and Ba (2015), section
/// 2.
template <class T>
struct adam_step {
  Tensor<T, 0> step_size, eps, mean_share, square_share;
};
template <class T>
constexpr adam_step<T> begin_adam(const Scalar& lr, const Scalar& beta1, const Scalar& beta2,
                                  const Scalar& eps, const Tensor<T, 0>& count) {
  const auto bias1 = 1 - exp(log(beta1.as<T>()) * count);
  const auto root = sqrt(1 - exp(log(beta2.as<T>()) * count));
  return {lr.as<T>() / bias1 * root, root * eps, 1 - beta1.as<T>(), 1 - beta2.as<T>()};
}
/// The moments' new values, in place; then the change of a parameter. largest: empty, or the
/// largest second moment so far, which replaces the second moment.
constexpr auto adam_change(const auto& s, const Scalar& beta1, const Scalar& beta2, const auto& g,
                           auto& mean, auto& square, auto&... largest) {
  mean.copy_(mean.detach() * beta1 + g * s.mean_share);
  square.copy_(square.detach() * beta2 + g * g * s.square_share);
  (largest.copy_(maximum(largest.detach(), square.detach())), ...);
  const auto& second = [&]() -> auto& {
    if constexpr (sizeof...(largest) > 0) return (largest, ...);
    else return square;
  }();
  return mean.detach() / (sqrt(second.detach()) + s.eps) * s.step_size;
}

/// Hyper-parameters of Adam, by PyTorch's names.
struct AdamOptions {
  Scalar lr = 1e-3;
  Scalar beta1 = 0.9;
  Scalar beta2 = 0.999;
  Scalar eps = 1e-8;
  Scalar weight_decay = 0;

  static constexpr int states = 2;
  template <class T>
  constexpr adam_step<T> begin(const Tensor<T, 0>& count) const {
    return begin_adam(lr, beta1, beta2, eps, count);
  }
  /// Kingma and Ba (2015), algorithm 1.
  constexpr void update(const auto& s, auto& p, const auto& gradient, auto&... moments) const {
    const auto old = p.detach();
    const auto g = gradient + old * weight_decay;
    p.copy_(old - adam_change(s, beta1, beta2, g, moments...));
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::Adam", {{"lr", lr.value()},
                                      {"beta1", beta1.value(), 0, 1, true},
                                      {"beta2", beta2.value(), 0, 1, true},
                                      {"eps", eps.value()},
                                      {"weight_decay", weight_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, beta1, beta2, eps, weight_decay)
};

/// Makes Adam or AdamW divide by the largest second moment so far, a third tensor for each
/// parameter: optim::Adam{model, {.lr = 1e-3}, optim::amsgrad}. Reddi, Kale, Kumar (2018).
struct amsgrad_t {};
inline constexpr amsgrad_t amsgrad{};

/// The options of such an optimizer.
template <class Options>
struct Amsgrad : Options {
  static constexpr int states = Options::states + 1;
  constexpr Amsgrad() = default;
  constexpr Amsgrad(const Options& o) : Options(o) {}
};

/// Adam; its weight decay is part of the gradient.
template <class Model, class Rule = AdamOptions>
struct Adam : Optimizer<Model, Rule> {
  using Optimizer<Model, Rule>::Optimizer;
  template <class M, class... G>
    requires(!std::is_same_v<Rule, AdamOptions>)
  constexpr Adam(M&& model, const AdamOptions& o, amsgrad_t, const G&... groups)
      : Optimizer<Model, Rule>(model, Rule(o), groups...) {}
};
template <class Model, class... G>
Adam(Model&&, AdamOptions, amsgrad_t, G...) -> Adam<optimized<Model, G...>, Amsgrad<AdamOptions>>;
template <class Model, class... G>
Adam(Model&&, AdamOptions, G...) -> Adam<optimized<Model, G...>>;
template <class Model>
Adam(Model&&) -> Adam<optimized<Model>>;
template <class... A>
Adam(A&&...) -> Adam<not_a_model<A...>>;

}  // namespace xla::optim
