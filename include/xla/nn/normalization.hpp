// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/derived/normalize.hpp"

namespace xla::nn {

/// Each row along the last axis with mean 0 and variance 1, then times weight plus bias. Another
/// size of that axis than weight has is a shape_error.
template <class T>
struct BasicLayerNorm {
  using value_type = T;
  Parameter<T, 1> weight, bias;  ///< (features)
  Scalar eps = 1e-5;

  constexpr BasicLayerNorm() = default;
  constexpr explicit BasicLayerNorm(std::int64_t features, Scalar epsilon = 1e-5)
      : weight({features}), bias({features}), eps(epsilon) {
    check_options("nn::LayerNorm", {{"eps", epsilon.value()}});
    if (!__builtin_is_constant_evaluated()) init::ones_(weight);
  }
  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller who = here()) const {
    return layer_norm(x, weight, bias, eps, who);
  }
  XLA_MODULE(weight, bias, eps)
};
using LayerNorm = BasicLayerNorm<float>;

/// Each row along the last axis with mean square 1, then times weight. Another size of that axis
/// than weight has is a shape_error.
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
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller who = here()) const {
    return rms_norm(x, weight, eps, who);
  }
  XLA_MODULE(weight, eps)
};
using RMSNorm = BasicRMSNorm<float>;

/// Each feature of (batch, features) with mean 0 and variance 1, then times weight plus bias: those
/// of the batch while training, of all batches so far (running, with momentum) in evaluation.
/// Another number of features is a shape_error.
template <class T>
struct BasicBatchNorm1d {
  using value_type = T;
  Parameter<T, 1> weight, bias;                 ///< (features)
  Buffer<T, 1> running_mean, running_var;       ///< (features)
  Buffer<std::int64_t, 0> num_batches_tracked;  ///< so far
  Scalar eps = 1e-5, momentum = 0.1;
  TrainingFlag training;

  constexpr BasicBatchNorm1d() = default;
  constexpr explicit BasicBatchNorm1d(std::int64_t features, Scalar epsilon = 1e-5,
                                      Scalar rate = 0.1)
      : weight({features}),
        bias({features}),
        running_mean({features}),
        running_var({features}),
        eps(epsilon),
        momentum(rate) {
    check_options("nn::BatchNorm1d", {{"eps", epsilon.value()}, {"momentum", rate.value(), 0, 1}});
    if (__builtin_is_constant_evaluated()) return;
    init::ones_(weight);
    init::ones_(running_var);
  }
  constexpr Tensor<T, 2> operator()(const Tensor<T, 2>& x, caller who = here()) const {
    const auto y =
        batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps, who);
    if (training) num_batches_tracked.copy_(num_batches_tracked.detach() + 1);
    return y;
  }
  XLA_MODULE(weight, bias, running_mean, running_var, num_batches_tracked, eps, momentum, training)
};
using BatchNorm1d = BasicBatchNorm1d<float>;

}  // namespace xla::nn
