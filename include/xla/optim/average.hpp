// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "xla/module.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/run/runtime.hpp"

namespace xla::optim {

/// How much of the average stays at each update.
struct AverageOptions {
  Scalar decay = 0.999;
  XLA_HEADER_MODULE(decay)
};

/// The exponential moving average of a model's parameters, as they are at first and after each
/// update(); like an optimizer it is an argument of the step beside its model, and refers to it.
/// Buffers are not averaged. Polyak and Juditsky (1992).
template <class Model>
class ExponentialMovingAverage {
 public:
  using model_type = Model;
  using module_type = typename detail::model_traits<Model>::module;
  static constexpr int parameters = detail::count_parameters<module_type>();

  constexpr explicit ExponentialMovingAverage(Model part, AverageOptions o = {})
    requires(!std::is_same_v<Model, module_type>)
      : ExponentialMovingAverage(detail::model_traits<Model>::of(*part.root), o) {}
  constexpr explicit ExponentialMovingAverage(module_type& model, AverageOptions o = {})
      : options(o), model_(&model) {
    static_assert(parameters > 0, "xla::optim: the model has no parameters");
    if (std::is_constant_evaluated()) return;
    std::size_t i = 0;
    for_each_parameter(model, [&](auto& p) {
      average_[i] = Buffer<float, dynamic_rank>::like(p);
      average_[i++].copy_(p.detach());
    });
  }

  /// average = decay average + (1 - decay) parameter.
  constexpr void update() {
    const auto fresh = 1 - options.decay.as<float>();
    std::size_t i = 0;
    for_each_parameter(*model_, [&](auto& p) {
      auto& a = average_[i++];
      a.copy_(a.detach() * options.decay + p.detach() * fresh);
    });
  }

  /// Writes the averages into a model of this type: a copy to evaluate, or the model itself.
  constexpr void copy_to(module_type& model) const {
    std::size_t i = 0;
    for_each_parameter(model, [&](auto& p) { p.copy_(average_[i++].detach()); });
  }

  constexpr module_type& model() const { return *model_; }
  /// Calls f(average, parameter) for each parameter.
  template <class F>
  constexpr void visit_state(F&& f) {
    std::size_t i = 0;
    for_each_parameter(*model_, [&](auto& p) { f(average_[i++], &p); });
  }

  AverageOptions options;

 private:
  module_type* model_;
  std::array<Buffer<float, dynamic_rank>, static_cast<std::size_t>(parameters)> average_;
};
template <class Model>
ExponentialMovingAverage(Model&, AverageOptions) -> ExponentialMovingAverage<Model>;
template <class Model>
ExponentialMovingAverage(Model&) -> ExponentialMovingAverage<Model>;
template <class Root, auto Member>
ExponentialMovingAverage(Part<Root, Member>, AverageOptions)
    -> ExponentialMovingAverage<Part<Root, Member>>;
template <class Root, auto Member>
ExponentialMovingAverage(Part<Root, Member>) -> ExponentialMovingAverage<Part<Root, Member>>;

}  // namespace xla::optim
