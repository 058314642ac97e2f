// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/later.hpp"
#include "xla/module.hpp"
#include "xla/run/runtime.hpp"

namespace xla::optim {

/// What optimizers share. Rule is a struct of hyper-parameters (Scalar) with
///   static constexpr int states: tensors kept beside each parameter, 0 at the start;
///   begin(count) -> what all updates of a step share; count is the number of the step, from 1;
///   update(shared, parameter, gradient, state...): the new values, in place.
/// The optimizer refers to its model, which must outlive it. Its state exists from the start, so
/// that the first step is the same graph as all others.
template <class Model, class Rule>
class Optimizer {
 public:
  using model_type = Model;
  using module_type = typename detail::model_traits<Model>::module;
  static constexpr int parameters = detail::count_parameters<module_type>();
  using state_type = std::array<Buffer<float, dynamic_rank>, Rule::states>;

  constexpr explicit Optimizer(Model part, Rule rule = {})
    requires(!std::is_same_v<Model, module_type>)
      : Optimizer(detail::model_traits<Model>::of(*part.root), rule) {}
  constexpr explicit Optimizer(module_type& model, Rule rule = {}) : options(rule), model_(&model) {
    static_assert(parameters > 0, "xla::optim: the model has no parameters");
    if (__builtin_is_constant_evaluated()) return;
    using T = typename state_type::value_type::value_type;
    steps_ = Buffer<T, 0>::like(Tensor<T, 0>(T{}));
    int i = 0;
    for_each_parameter(model, [&](auto& p) {
      for (auto& s : state_[static_cast<std::size_t>(i)]) s = Buffer<float, dynamic_rank>::like(p);
      ++i;
    });
  }

  /// Drops all gradients.
  constexpr void zero_grad() {
    for_each_parameter(*model_, [](auto& p) { p.zero_grad(); });
  }

  /// Updates every parameter that has a gradient.
  constexpr void step() {
    auto& steps = detail::dependent<Rule>(steps_);
    steps.copy_(steps.detach() + 1);
    const auto shared = options.begin(steps.detach());
    std::size_t i = 0;
    for_each_parameter(*model_, [&](auto& p) {
      auto& state = state_[i++];
      const auto gradient = p.grad();
      if (!gradient.defined()) return;
      static_assert(std::is_same_v<typename std::remove_cvref_t<decltype(p)>::value_type, float>,
                    "xla::optim: parameters must be float");
      update(shared, p, gradient.detach(), state, std::make_index_sequence<Rule::states>{});
    });
  }

  constexpr module_type& model() const { return *model_; }
  /// Calls f(state, parameter) for each kept tensor, and f(steps) for the count.
  template <class F>
  constexpr void visit_state(F&& f) {
    f(steps_, nullptr);
    std::size_t i = 0;
    for_each_parameter(*model_, [&](auto& p) {
      for (auto& s : state_[i]) f(s, &p);
      ++i;
    });
  }

  Rule options;

 private:
  template <class Shared, class P, class G, std::size_t... I>
  constexpr void update(const Shared& shared, P& p, const G& gradient, state_type& state,
                        std::index_sequence<I...>) {
    options.update(shared, p, gradient, state[I]...);
  }

  module_type* model_;
  Buffer<float, 0> steps_;
  std::array<state_type, static_cast<std::size_t>(parameters)> state_;
};

}  // namespace xla::optim
