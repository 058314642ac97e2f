// SPDX-License-Identifier: Apache-2.0
#pragma once

// Learning rates as an argument of step(), instead of in the options, for steps that are compiled
// once and called with changing rates. optimizer.hpp takes them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

#include "xla/base/error.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"

namespace xla::optim {

/// The result of lr_factor().
template <class T>
struct LRFactor {
  Tensor<T, 0> factor;
};

/// For optimizer.step(): multiplies every group's own learning rate by a factor for this step, as
/// PyTorch's LambdaLR multiplies the initial ones: optimizer.step(optim::lr_factor(decay)).
template <class T>
constexpr LRFactor<T> lr_factor(const Tensor<T, 0>& factor) {
  static_assert(std::is_floating_point_v<T>,
                "xla::optim::lr_factor: the factor is a tensor of float or double");
  return {factor.detach()};
}

namespace detail {

template <class>
inline constexpr bool is_lr_factor = false;
template <class T>
inline constexpr bool is_lr_factor<LRFactor<T>> = true;

template <class T, std::size_t Count>
using learning_rates = std::array<Tensor<T, 0>, Count>;

/// One learning rate for all groups.
template <class T, std::size_t Count, class U>
constexpr learning_rates<T, Count> rates_of(const Tensor<U, 0>& lr) {
  static_assert(std::is_floating_point_v<U>,
                "xla::optim: step(lr) takes a learning rate of float or double");
  learning_rates<T, Count> all;
  all.fill(cast<T>(lr.detach()));
  return all;
}
/// The elements of a tensor, one per group.
template <class T, std::size_t Count, class U>
constexpr learning_rates<T, Count> rates_of(const Tensor<U, 1>& lr) {
  static_assert(std::is_floating_point_v<U>,
                "xla::optim: step(lr) takes learning rates of float or double");
  constexpr auto count = static_cast<std::int64_t>(Count);
  if (!__builtin_is_constant_evaluated() && lr.size(0) != count)
    throw runtime_error("xla::optim: step(lr): " + std::to_string(lr.numel()) +
                        " learning rates for " + std::to_string(count) +
                        ": of the parameters in no group, then of each group");
  const auto cut = reshape(cast<T>(lr.detach()), {count});
  learning_rates<T, Count> all;
  for (std::int64_t k = 0; k < count; ++k) all[static_cast<std::size_t>(k)] = select(cut, 0, k);
  return all;
}
/// The elements of an array or a tuple, one per group.
template <class T, std::size_t Count, class Rates>
  requires requires { std::tuple_size<Rates>::value; }
constexpr learning_rates<T, Count> rates_of(const Rates& lr) {
  constexpr bool fits = std::tuple_size_v<Rates> == Count;
  static_assert(fits,
                "xla::optim: step(lr) takes one learning rate for all parameters, or one for those "
                "in no group and then one for each group");
  learning_rates<T, Count> all;
  if constexpr (fits)
    std::apply(
        [&](const auto&... each) {
          std::size_t k = 0;
          ((all[k++] = rates_of<T, 1>(each)[0]), ...);
        },
        lr);
  return all;
}

}  // namespace detail
}  // namespace xla::optim
