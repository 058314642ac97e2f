// SPDX-License-Identifier: Apache-2.0
#pragma once

// gradient_accumulation(): a loop over micro-batches that adds up their gradients before one
// optimizer step, like torch_xla's. The caller makes the optimizer step.

#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/scan.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/transform/backward.hpp"

namespace xla {
namespace detail {

/// The result of a step of gradient_accumulation(): a loss, or a tuple of it and all carries.
template <class Made>
constexpr const auto& loss_of_step(const Made& made) {
  if constexpr (is_tuple<Made>) return std::get<0>(made);
  else return made;
}
template <class Made>
constexpr auto carries_of_step(const Made& made) {
  if constexpr (is_tuple<Made>)
    return std::apply([](const auto&, const auto&... c) { return std::tuple(c...); }, made);
  else return std::tuple<>();
}

}  // namespace detail

/// Adds up the gradients of several steps, like torch_xla's gradient_accumulation. A step is one
/// index of the iterable tensors' first axis: train_step(x..., carried...) -> loss, or a tuple of
/// the loss and all carried tensors. backward() of the loss divided by the number of steps follows.
/// Returns a tuple of the sum of these losses and the carried tensors. The steps add to the
/// existing gradients of the parameters, so that one optimizer.step() afterwards serves all. In a
/// compiled function it is a loop with one set of gradients.
template <class Step, class... X, class Model, class... C>
constexpr auto gradient_accumulation(const Step& train_step, const std::tuple<X...>& iterable_tensors,
                                     Model&, const std::tuple<C...>& carried_tensors = {},
                                     caller loc = here()) {
  static_assert(sizeof...(X) > 0, "xla::gradient_accumulation: there are no iterable tensors");
  static_assert(detail::described<Model>, "xla::gradient_accumulation: the third argument is the "
                                          "model, whose parameters get the gradients");
  using Carried = typename detail::carried_as<std::tuple<C...>>::type;
  const auto one = [&](const auto& x, const Carried& carried) {
    return std::apply(train_step, std::tuple_cat(x, carried));
  };
  const Size steps = detail::length_of(iterable_tensors, -1, {"gradient_accumulation", loc});
  const auto slices = [](const auto&... x) { return std::tuple(select(x, 0, 0)...); };
  using Made = decltype(one(std::apply(slices, iterable_tensors), std::declval<const Carried&>()));
  using Loss = std::remove_cvref_t<decltype(detail::loss_of_step(std::declval<const Made&>()))>;
  using T = typename Loss::value_type;
  static_assert(Loss::rank == 0, "xla::gradient_accumulation: a step returns its loss, a tensor "
                                 "without axes, alone or before the carried tensors");
  const auto body = [&](const std::tuple<Loss, Carried>& now, const auto& x) {
    const Made made = one(x, std::get<1>(now));
    const Loss loss = detail::loss_of_step(made) / steps;
    loss.backward();
    return std::pair(std::tuple<Loss, Carried>(std::get<0>(now) + loss.detach(),
                                               detail::carries_of_step(made)),
                     std::tuple<>());
  };
  const std::tuple<Loss, Carried> first(tensor(T{0}), carried_tensors);
  constexpr auto function = detail::loop_function::gradient_accumulation;
  const auto last = detail::scan_as<function>(body, first, iterable_tensors, {}, loc).first;
  return std::apply([&](const auto&... c) { return std::tuple(std::get<0>(last), c...); },
                    std::get<1>(last));
}

}  // namespace xla
