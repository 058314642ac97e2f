// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear, without bias, and with another layer's weight.

#include <cmath>
#include <type_traits>

#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/matmul.hpp"

namespace xla::nn {

namespace detail {
/// One over the square root of a weight's inputs.
template <class T>
auto linear_bound(const Tensor<T, 2>& weight) {
  using number = std::conditional_t<std::is_floating_point_v<T>, T, float>;
  return 1 / std::sqrt(static_cast<number>(weight.dims()[1]));
}
}  // namespace detail

/// y = x weightᵀ + bias: (…, in) to (…, out), like torch.nn.Linear, with its initialisation. A last
/// axis of another size than in is a shape_error.
template <class T>
struct BasicLinear {
  using value_type = T;
  Parameter<T, 2> weight;  ///< (out, in)
  Parameter<T, 1> bias;    ///< (out)

  constexpr BasicLinear() = default;
  constexpr BasicLinear(std::int64_t in, std::int64_t out) : weight({out, in}), bias({out}) {
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// Uniform within one over the square root of in, weight and bias (He et al. 2015, a = sqrt 5).
  void reset_parameters() {
    const auto bound = detail::linear_bound(weight);
    init::uniform_(weight, T(-bound), T(bound));
    init::uniform_(bias, T(-bound), T(bound));
  }
  template <class U, int R>
  constexpr Tensor<T, R> operator()(const Tensor<U, R>& x, caller loc = here()) const {
    return linear(x, weight, bias, loc);
  }
  XLA_MODULE(weight, bias)
};
using Linear = BasicLinear<float>;

/// y = x weightᵀ: torch.nn.Linear with bias=False. A last axis of another size than in is a
/// shape_error.
template <class T>
struct BasicLinearNoBias {
  using value_type = T;
  Parameter<T, 2> weight;  ///< (out, in)

  constexpr BasicLinearNoBias() = default;
  constexpr BasicLinearNoBias(std::int64_t in, std::int64_t out) : weight({out, in}) {
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// Uniform within one over the square root of in.
  void reset_parameters() {
    const auto bound = detail::linear_bound(weight);
    init::uniform_(weight, T(-bound), T(bound));
  }
  template <class U, int R>
  constexpr Tensor<T, R> operator()(const Tensor<U, R>& x, caller loc = here()) const {
    return linear(x, weight, loc);
  }
  XLA_MODULE(weight)
};
using LinearNoBias = BasicLinearNoBias<float>;

/// y = x weightᵀ + bias with the weight of another layer, like a torch.nn.Linear whose weight was
/// tied to an nn::Embedding's: decoder(h, encoder.weight). It has only a bias; the weight stays one
/// parameter, with one gradient. XLA_TIED names it for files that have it twice.
template <class T>
struct BasicTiedLinear {
  using value_type = T;
  Parameter<T, 1> bias;  ///< (out)

  constexpr BasicTiedLinear() = default;
  constexpr BasicTiedLinear(std::int64_t in, std::int64_t out) : bias({out}) {
    if (!__builtin_is_constant_evaluated()) reset_parameters(in);
  }
  /// Uniform within one over the square root of in.
  void reset_parameters(std::int64_t in) {
    using number = std::conditional_t<std::is_floating_point_v<T>, T, float>;
    const auto bound = 1 / std::sqrt(static_cast<number>(in));
    init::uniform_(bias, T(-bound), T(bound));
  }
  template <class U, int R>
  constexpr Tensor<T, R> operator()(const Tensor<U, R>& x, const Tensor<T, 2>& weight,
                                    caller loc = here()) const {
    return linear(x, weight, bias, loc);
  }
  XLA_MODULE(bias)
};
using TiedLinear = BasicTiedLinear<float>;

}  // namespace xla::nn
