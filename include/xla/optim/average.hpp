// SPDX-License-Identifier: Apache-2.0
#pragma once

// The exponential moving average of a model's parameters, for evaluation. It is updated after the
// optimizer and writes into a model only on request.

#include <array>
#include <tuple>

#include "xla/module.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/where.hpp"
#include "xla/run/state/transaction.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/tensor/part.hpp"

namespace xla::optim {

/// The decay of the average at each update, and what is averaged.
struct AverageOptions {
  Scalar decay = 0.999;
  Scalar use_buffers = false;  ///< average buffers too; else they are copied at each update
  XLA_HEADER_MODULE(decay, use_buffers)
};

/// How many parameters and buffers with elements T a module type has.
template <class T, class Module>
constexpr std::size_t count_states() {
  std::size_t n = 0;
  visit_state_types<Module>([&]<class S>(std::type_identity<S>, const tree_path&) {
    n += std::is_same_v<typename S::value_type, T>;
  });
  return n;
}

/// A buffer for every parameter and buffer of a module.
template <class Module>
class parameter_buffers {
 public:
  /// Calls f(buffer, state, path) for each.
  template <class Self, class F>
  static constexpr void visit(Self& self, auto&& module, const F& f, const tree_path& path = {}) {
    std::size_t next[dtypes] = {};
    visit_states(
        module,
        [&](auto& state, const tree_path& at) {
          using T = typename std::remove_cvref_t<decltype(state)>::value_type;
          constexpr auto type = static_cast<std::size_t>(dtype_of<T>);
          f(std::get<type>(self.all_)[next[type]++], state, at);
        },
        path);
  }

 private:
  template <std::size_t... D>
  static auto arrays(std::index_sequence<D...>)
      -> std::tuple<std::array<Buffer<cpp_type<static_cast<dtype>(D)>, dynamic_rank>,
                               count_states<cpp_type<static_cast<dtype>(D)>, Module>()>...>;
  decltype(arrays(std::make_index_sequence<dtypes>{})) all_;
};

/// The exponential moving average of a model's parameters, from their initial values on, updated by
/// update(). Like an optimizer it is an argument of the step together with its model, and refers to
/// it. Buffers are those of the last update or, with use_buffers, their averages, except buffers of
/// integers or bool. Polyak and Juditsky (1992).
template <class Model>
class ExponentialMovingAverage {
  using traits = model_traits<Model>;
  using holder = typename traits::holder;
  using averages = parameter_buffers<typename traits::module>;

 public:
  using model_type = Model;
  using module_type = typename traits::module;

  constexpr explicit ExponentialMovingAverage(const holder& model, AverageOptions o = {})
      : options(o), model_(model) {
    static_assert(count_parameters<module_type>() > 0, "xla::optim: the model has no parameters");
    if (__builtin_is_constant_evaluated()) return;
    averages::visit(average_, model_.get(), [](auto& a, auto& state, const auto&) {
      a = std::remove_reference_t<decltype(a)>::like(state);
      a.copy_(state.detach());
    });
  }

  /// average = decay average + (1 - decay) parameter, for all, or for none if that throws.
  constexpr void update() {
    if (__builtin_is_constant_evaluated()) update_all();
    else transaction([this] { update_all(); });
  }

  /// Writes the averages into a model of this type: a copy to evaluate, or the model itself.
  constexpr void copy_to(const holder& model) const {
    averages::visit(average_, model.get(),
                    [](auto& a, auto& state, const auto&) { state.copy_(a.detach()); });
  }

  constexpr decltype(auto) model() const { return model_.get(); }
  constexpr const holder& target() const { return model_; }
  /// Calls f(average, path) for each parameter's and buffer's average: "fc1.weight.0".
  template <class F>
  constexpr void visit_state(F&& f, const tree_path& path = {}) {
    const auto one = [&f](auto& a, auto& state, const auto& at) { f(a, state_path(at, state, 0)); };
    averages::visit(average_, model_.get(), one, path);
  }

  AverageOptions options;

 private:
  constexpr void update_all() {
    averages::visit(average_, model_.get(), [this](auto& a, auto& state, const auto&) {
      using S = std::remove_reference_t<decltype(state)>;
      using T = typename S::value_type;
      if constexpr (floating_type<T>) {
        const auto fresh = 1 - options.decay.template as<T>();
        const auto mean = a.detach() * options.decay + state.detach() * fresh;
        if constexpr (S::trainable) a.copy_(mean);
        else a.copy_(where(options.use_buffers.template as<T>() != 0, mean, state.detach()));
      } else {
        a.copy_(state.detach());
      }
    });
  }

  holder model_;
  averages average_;
};
template <class Model>
ExponentialMovingAverage(Model&&, AverageOptions) -> ExponentialMovingAverage<model_target<Model>>;
template <class Model>
ExponentialMovingAverage(Model&&) -> ExponentialMovingAverage<model_target<Model>>;

}  // namespace xla::optim
