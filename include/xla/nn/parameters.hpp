// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions on all parameters of a model: as one vector, or moved towards another model's. Not in
// xla.hpp; optimizers visit the parameters themselves.

#include <array>
#include <cstddef>
#include <type_traits>

#include "xla/module.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/state/transaction.hpp"
#include "xla/tensor/part.hpp"

namespace xla::nn {

/// All parameters of a model as one vector, in the order of the members: torch.nn.utils'
/// parameters_to_vector. Gradients come back to the parameters.
template <class Module>
constexpr auto parameters_to_vector(const Module& model) {
  using T = parameter_type<Module>;
  static_assert(count_parameters<Module>() > 0,
                "xla::nn::parameters_to_vector: the model has no parameters");
  static_assert(element<T>,
                "xla::nn::parameters_to_vector: parameters are all of one element type; take a "
                "part of the model where they differ");
  std::array<Tensor<T, 1>, static_cast<std::size_t>(count_parameters<Module>())> parts;
  std::size_t i = 0;
  for_each_parameter(model, [&](auto& p) { parts[i++] = flatten(p); });
  return cat(parts, 0);
}

/// Writes a vector of all parameters into a model, each of which takes its part; gradients do not
/// continue to the vector. Another number of elements is a shape_error.
template <class Module>
constexpr void vector_to_parameters(const Tensor<parameter_type<Module>, 1>& vector,
                                    const Module& model, caller loc = here()) {
  const auto write = [&] {
    Size at = 0;
    const auto value = vector.detach();
    for_each_parameter(model, [&](auto& p) { at = at + p.numel(); });
    const auto all = reshape(value, {at}, loc);  // or its size is refused
    at = 0;
    for_each_parameter(model, [&](auto& p) {
      const Size n = p.numel();
      p.copy_(reshape_as(narrow(all, 0, at, n, loc), p, loc));
      at = at + n;
    });
  };
  if (__builtin_is_constant_evaluated()) write();
  else transaction(write);
}

/// Moves a target network towards a trained model: every parameter becomes target + tau (source -
/// target). Buffers stay. Compiled steps may do it as well.
template <class Module>
constexpr void lerp_parameters(const Module& target, const Module& source, const Scalar& tau) {
  using T = parameter_type<Module>;
  static_assert(element<T>,
                "xla::nn::lerp_parameters: parameters are all of one element type; take a part of "
                "the model where they differ");
  std::array<Tensor<T, dynamic_rank>, static_cast<std::size_t>(count_parameters<Module>())> goals;
  std::size_t i = 0;
  for_each_parameter(source, [&](auto& p) { goals[i++] = p.detach(); });
  const auto write = [&] {
    i = 0;
    for_each_parameter(target, [&](auto& p) {
      using value = Tensor<T, std::remove_cvref_t<decltype(p)>::rank>;
      const value now = p.detach(), goal = goals[i++];
      p.copy_(now + (goal - now) * tau);
    });
  };
  if (__builtin_is_constant_evaluated()) write();
  else transaction(write);
}

}  // namespace xla::nn
