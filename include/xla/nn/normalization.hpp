// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/later.hpp"
#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/derived/normalize.hpp"

namespace xla::nn {

/// Each row along the last axis with mean 0 and variance 1, then times weight plus bias.
struct LayerNorm {
  Parameter<float, 1> weight, bias;  ///< (features)
  Scalar eps = 1e-5;

  constexpr LayerNorm() = default;
  template <class N = Size>
  constexpr explicit LayerNorm(std::int64_t features, Scalar epsilon = 1e-5)
      : weight({N(features)}), bias({N(features)}), eps(epsilon) {
    if (!__builtin_is_constant_evaluated()) init::ones_(weight);
  }
  template <int R>
  constexpr Tensor<float, R> operator()(const Tensor<float, R>& x, caller who = here()) const {
    return layer_norm(x, weight, bias, eps, who);
  }
  XLA_HEADER_MODULE(weight, bias, eps)
};

/// Each row along the last axis with mean square 1, then times weight.
struct RMSNorm {
  Parameter<float, 1> weight;  ///< (features)
  Scalar eps = std::numeric_limits<float>::epsilon();

  constexpr RMSNorm() = default;
  template <class N = Size>
  constexpr explicit RMSNorm(std::int64_t features,
                             Scalar epsilon = std::numeric_limits<float>::epsilon())
      : weight({N(features)}), eps(epsilon) {
    if (!__builtin_is_constant_evaluated()) init::ones_(weight);
  }
  template <int R>
  constexpr Tensor<float, R> operator()(const Tensor<float, R>& x, caller who = here()) const {
    return rms_norm(x, weight, eps, who);
  }
  XLA_HEADER_MODULE(weight, eps)
};

/// Each feature of (batch, features) with mean 0 and variance 1, then times weight plus bias: those
/// of the batch while training, of all batches so far (running, with momentum) in evaluation.
struct BatchNorm1d {
  Parameter<float, 1> weight, bias;             ///< (features)
  Buffer<float, 1> running_mean, running_var;   ///< (features)
  Buffer<std::int64_t, 0> num_batches_tracked;  ///< so far
  Scalar eps = 1e-5, momentum = 0.1;
  TrainingFlag training;

  constexpr BatchNorm1d() = default;
  template <class N = Size, class T = std::int64_t>
  constexpr explicit BatchNorm1d(std::int64_t features, Scalar epsilon = 1e-5, Scalar rate = 0.1)
      : weight({N(features)}),
        bias({N(features)}),
        running_mean({N(features)}),
        running_var({N(features)}),
        eps(epsilon),
        momentum(rate) {
    if (__builtin_is_constant_evaluated()) return;
    init::ones_(weight);
    init::ones_(running_var);
    num_batches_tracked = decltype(num_batches_tracked)::like(tensor(T{}));
  }
  template <class T>
  constexpr Tensor<T, 2> operator()(const Tensor<T, 2>& x, caller who = here()) const {
    const auto y =
        batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps, who);
    auto& seen = xla::detail::dependent<T>(num_batches_tracked);
    if (training) seen.copy_(seen.detach() + 1);
    return y;
  }
  XLA_HEADER_MODULE(weight, bias, running_mean, running_var, num_batches_tracked, eps, momentum,
                    training)
};

}  // namespace xla::nn
