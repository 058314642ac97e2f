// SPDX-License-Identifier: Apache-2.0
#pragma once

// LayerNorm and RMSNorm as layers.

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/derived/normalize.hpp"

namespace xla::nn {

/// Normalizes each row along the last axis to mean 0 and variance 1, then multiplies by weight and
/// adds bias if it has one. Another size of that axis than weight's is a shape_error.
template <class T, bool Bias = true>
struct BasicLayerNorm {
  using value_type = T;
  using bias_state = detail::state_if<Bias, Parameter<T, 1>>;
  Parameter<T, 1> weight;  ///< (features)
  bias_state bias;         ///< (features)
  Scalar eps = 1e-5;

  constexpr BasicLayerNorm() = default;
  constexpr explicit BasicLayerNorm(std::int64_t features, Scalar epsilon = 1e-5)
      : weight({features}), bias(detail::make_state<bias_state>({features})), eps(epsilon) {
    check_options("nn::LayerNorm", {{"eps", epsilon.value()}});
    if (!__builtin_is_constant_evaluated()) init::ones_(weight);
  }
  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    if constexpr (Bias) return layer_norm(x, weight, bias, eps, loc);
    else return layer_norm(x, weight, eps, loc);
  }
  XLA_MODULE(weight, bias, eps)
};
using LayerNorm = BasicLayerNorm<float>;

/// Normalizes each row along the last axis to mean square 1, then multiplies by weight. Another
/// size of that axis than weight's is a shape_error.
template <class T>
struct BasicRMSNorm {
  using value_type = T;
  Parameter<T, 1> weight;  ///< (features)
  Scalar eps = std::numeric_limits<T>::epsilon();

  constexpr BasicRMSNorm() = default;
  constexpr explicit BasicRMSNorm(std::int64_t features,
                                  Scalar epsilon = std::numeric_limits<T>::epsilon())
      : weight({features}), eps(epsilon) {
    check_options("nn::RMSNorm", {{"eps", epsilon.value()}});
    if (!__builtin_is_constant_evaluated()) init::ones_(weight);
  }
  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return rms_norm(x, weight, eps, loc);
  }
  XLA_MODULE(weight, eps)
};
using RMSNorm = BasicRMSNorm<float>;

}  // namespace xla::nn
