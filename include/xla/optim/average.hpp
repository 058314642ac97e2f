// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>

#include "xla/module.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/where.hpp"
#include "xla/run/state/all_or_nothing.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/tensor/part.hpp"

namespace xla::optim {

/// How much of the average stays at each update, and of what.
struct AverageOptions {
  Scalar decay = 0.999;
  Scalar use_buffers = false;  ///< average buffers too; else they are copied at each update
  XLA_HEADER_MODULE(decay, use_buffers)
};

}  // namespace xla::optim

namespace xla::detail {

/// Buffers beside all parameters and buffers of a module, in its structure.
template <class X>
struct beside_state {
  using type = std::tuple<>;
};
template <class T, int R, bool B>
struct beside_state<State<T, R, B>> {
  using type = Buffer<T, dynamic_rank>;
};
template <class X, std::size_t N>
struct beside_state<std::array<X, N>> {
  using type = std::array<typename beside_state<X>::type, N>;
};
template <class... X>
struct beside_state<std::tuple<X...>> {
  using type = std::tuple<typename beside_state<std::remove_cvref_t<X>>::type...>;
};
template <class A, class B>
struct beside_state<std::pair<A, B>> : beside_state<std::tuple<A, B>> {};
template <described X>
struct beside_state<X> {
  static constexpr auto find(auto... m) {
    return std::type_identity<std::tuple<typename beside_state<
        std::remove_cvref_t<decltype(m.get(std::declval<X&>()))>>::type...>>{};
  }
  using type =
      typename decltype(hana::unpack(X::xla_members(), [](auto... m) { return find(m...); }))::type;
};

/// Calls f(buffer beside it, state) for every parameter and buffer of x.
template <class Beside, class X, class F>
constexpr void visit_beside(Beside& beside, X& x, const F& f) {
  using U = std::remove_cv_t<X>;
  const auto each = [&]<std::size_t... I>(std::index_sequence<I...>, auto get) {
    (visit_beside(std::get<I>(beside), get(std::integral_constant<std::size_t, I>{}), f), ...);
  };
  if constexpr (is_state<U>) {
    f(beside, x);
  } else if constexpr (is_array<U>) {
    for (std::size_t i = 0; i < x.size(); ++i) visit_beside(beside[i], x[i], f);
  } else if constexpr (is_tuple<U>) {
    each(std::make_index_sequence<std::tuple_size_v<U>>{},
         [&](auto i) -> auto& { return std::get<i>(x); });
  } else if constexpr (described<U> && std::tuple_size_v<Beside> > 0) {
    each(std::make_index_sequence<std::tuple_size_v<Beside>>{},
         [&](auto i) -> auto& { return hana::at_c<i>(U::xla_members()).get(x); });
  }
}

}  // namespace xla::detail

namespace xla::optim {

/// The exponential moving average of a model's parameters, as they are at first and after each
/// update(); like an optimizer it is an argument of the step beside its model, and refers to it.
/// Buffers are those of the last update, or with use_buffers their averages, but for buffers of
/// whole numbers or bool. Polyak and Juditsky (1992).
template <class Model>
class ExponentialMovingAverage {
  using traits = xla::detail::model_traits<Model>;
  using holder = typename traits::holder;

 public:
  using model_type = Model;
  using module_type = typename traits::module;

  constexpr explicit ExponentialMovingAverage(const holder& model, AverageOptions o = {})
      : options(o), model_(model) {
    static_assert(xla::detail::count_parameters<module_type>() > 0,
                  "xla::optim: the model has no parameters");
    if (__builtin_is_constant_evaluated()) return;
    xla::detail::visit_beside(average_, model_.get(), [](auto& a, auto& state) {
      a = std::remove_reference_t<decltype(a)>::like(state);
      a.copy_(state.detach());
    });
  }

  /// average = decay average + (1 - decay) parameter; of all, or where that throws, of none.
  constexpr void update() {
    if (__builtin_is_constant_evaluated()) update_all();
    else xla::detail::all_or_nothing([this] { update_all(); });
  }

  /// Writes the averages into a model of this type: a copy to evaluate, or the model itself.
  constexpr void copy_to(const holder& model) const {
    xla::detail::visit_beside(average_, model.get(),
                              [](auto& a, auto& state) { state.copy_(a.detach()); });
  }

  constexpr decltype(auto) model() const { return model_.get(); }
  constexpr const holder& target() const { return model_; }
  /// Calls f(average, state) for each parameter and buffer.
  template <class F>
  constexpr void visit_state(F&& f) {
    xla::detail::visit_beside(average_, model_.get(), [&f](auto& a, auto& state) { f(a, &state); });
  }

  AverageOptions options;

 private:
  constexpr void update_all() {
    xla::detail::visit_beside(average_, model_.get(), [this](auto& a, auto& state) {
      using S = std::remove_reference_t<decltype(state)>;
      using T = typename S::value_type;
      if constexpr (fraction<T>) {
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
  typename xla::detail::beside_state<module_type>::type average_;
};
template <class Model>
ExponentialMovingAverage(Model&&, AverageOptions)
    -> ExponentialMovingAverage<xla::detail::target<Model>>;
template <class Model>
ExponentialMovingAverage(Model&&) -> ExponentialMovingAverage<xla::detail::target<Model>>;

}  // namespace xla::optim
