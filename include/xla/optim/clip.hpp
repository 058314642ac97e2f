// SPDX-License-Identifier: Apache-2.0
#pragma once

// Clips gradients by norm or value before a step, like torch.nn.utils. They are functions of a
// model, not optimizers.

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/root.hpp"
#include "xla/run/state/transaction.hpp"
#include "xla/run/trace/repeated_rules.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/tensor/part.hpp"

namespace xla::optim {

using xla::gradient_part;

namespace detail {

constexpr void check_bound(const Scalar& bound) {
  if (bound.known()) check_options("optim::clip_grad", {{"the bound", bound.value()}});
}

/// Row by row first, so that the squares are summed where they are computed and never stored.
template <class T, int R>
constexpr Tensor<T, 0> sum_of_squares(const Tensor<T, R>& x) {
  if constexpr (R > 1) return sum(sum(x * x, {-1}));
  else return sum(x * x);
}

/// The type of a norm over all parameters of a module.
template <class Module>
using norm_type = std::conditional_t<std::is_same_v<parameter_type<Module>, double>, double, float>;

/// The gradients of a module; those of equal blocks, in a captured step, are combined.
template <class Module>
class module_gradients {
 public:
  constexpr explicit module_gradients(const Module& of) : of_(of) {
    if (__builtin_is_constant_evaluated()) repeats_.find(of, 1, [](int) { return 0; });
  }
  /// Adds up the numbers f(gradient) of all parameters with a gradient, in their order: see
  /// gradient_part().
  template <class F, class Number>
  constexpr void add_up(const F& f, Number& total) const {
    const auto add = [&](const Number& part) {
      if (total.defined()) total = total + part;
      else total = part;
    };
    visit(
        [&](int i, auto& p) {
          const auto part = [&](const auto& g) { return gradient_part(p, f(g)); };
          if (!repeats_.add_up(i, p, part, total)) add(repeats_.apply(i, p, part));
        },
        [&](auto& p, const auto& g) { add(gradient_part(p, f(g))); });
  }
  /// Replaces every gradient by f(gradient), or none if that throws.
  template <class F>
  constexpr void change(const F& f) const {
    const auto all = [&] {
      visit([&](int i, auto& p) { repeats_.replace_gradient(i, p, f); },
            [&](auto& p, const auto& g) { p.set_grad(f(g)); });
    };
    if (__builtin_is_constant_evaluated()) all();
    else transaction(all);
  }

 private:
  template <class Repeated, class Alone>
  constexpr void visit(const Repeated& repeated, const Alone& alone) const {
    int i = 0;
    for_each_parameter(of_, [&](auto& p) {
      const int at = i++;
      if (__builtin_is_constant_evaluated() && repeats_.holds(at)) repeated(at, p);
      else if (const auto g = p.grad(); g.defined()) alone(p, g);
    });
  }

  const Module& of_;
  repeated_rules repeats_;
};

}  // namespace detail

/// Scales all gradients of a module so that their norm, taken as one vector, is at most max_norm.
/// Returns the previous norm; reads no value, so that it can be part of a compiled step. Pascanu,
/// Mikolov, Bengio (2013).
template <class Module, class Norm = detail::norm_type<Module>>
constexpr Tensor<Norm, 0> clip_grad_norm_(const Module& module, const Scalar& max_norm) {
  detail::check_bound(max_norm);
  Tensor<Norm, 0> total;
  const auto square_of = [](const auto& g) { return cast<Norm>(detail::sum_of_squares(g)); };
  const detail::module_gradients all(module);
  all.add_up(square_of, total);
  if (!total.defined()) return Norm{};
  const auto norm = sqrt(total);
  const auto factor = minimum(max_norm.as<Norm>() / (norm + 1e-6), 1);
  all.change([&](const auto& g) {
    using T = typename std::remove_cvref_t<decltype(g)>::value_type;
    return g * cast<T>(factor);
  });
  return norm;
}

/// Clamps every element of a module's gradients to [-value, value]; usable in a compiled step.
template <class Module>
constexpr void clip_grad_value_(const Module& module, const Scalar& value) {
  detail::check_bound(value);
  detail::module_gradients(module).change([&](const auto& g) {
    const auto bound = value.as<typename std::remove_cvref_t<decltype(g)>::value_type>();
    return clamp(g, -bound, bound);
  });
}

}  // namespace xla::optim
