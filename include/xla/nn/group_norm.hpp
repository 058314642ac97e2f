// SPDX-License-Identifier: Apache-2.0
#pragma once

// GroupNorm and InstanceNorm1d, 2d, 3d as layers.

#include "xla/base/option.hpp"
#include "xla/nn/init.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/derived/group_norm.hpp"

namespace xla::nn {

/// Normalizes each of Groups equal groups of the channels of (N, C, …) to mean 0 and variance 1 in
/// every sample, then multiplies by weight and adds bias if it is Affine. A number of channels that
/// is not a multiple of Groups is an xla::error, another number of them a shape_error. Wu and He
/// (2018).
template <class T, int Groups, bool Affine = true>
struct BasicGroupNorm {
  static_assert(Groups > 0, "xla::nn::GroupNorm: needs at least one group");
  using value_type = T;
  using parameter = detail::state_if<Affine, Parameter<T, 1>>;
  parameter weight, bias;  ///< (channels)
  Scalar eps = 1e-5;

  constexpr BasicGroupNorm() = default;
  constexpr explicit BasicGroupNorm(std::int64_t channels, Scalar epsilon = 1e-5)
      : weight(detail::make_state<parameter>({channels})),
        bias(detail::make_state<parameter>({channels})),
        eps(epsilon) {
    check_options("nn::GroupNorm", {{"eps", epsilon.value()}});
    if (channels % Groups != 0)
      throw runtime_error("nn::GroupNorm: the channels have to be a multiple of the groups");
    if constexpr (Affine)
      if (!__builtin_is_constant_evaluated()) init::ones_(weight);
  }
  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    if constexpr (Affine) return group_norm(x, Groups, weight, bias, eps, loc);
    else return group_norm(x, Groups, eps, loc);
  }
  XLA_MODULE(weight, bias, eps)
};
template <int Groups>
using GroupNorm = BasicGroupNorm<float, Groups>;

/// The options of an instance normalization, by PyTorch's names.
struct InstanceNormOptions {
  bool affine = false;
  bool track_running_stats = false;
};

/// Normalizes each channel of (N, C, L), with two Axes of (N, C, H, W), to mean 0 and variance 1 in
/// every sample, then multiplies by weight and adds bias if it is affine. If it tracks running
/// statistics, momentum moves them to the means over the samples while training, and evaluation
/// uses them; like PyTorch's it counts no batches. Another number of channels, if it has any, is a
/// shape_error, and so are channels of one element. Ulyanov et al. (2016).
template <class T, int Axes, InstanceNormOptions O = InstanceNormOptions{}>
struct BasicInstanceNorm {
  using value_type = T;
  using parameter = detail::state_if<O.affine, Parameter<T, 1>>;
  using statistic = detail::state_if<O.track_running_stats, Buffer<T, 1>>;
  using counter = detail::state_if<O.track_running_stats, Buffer<std::int64_t, 0>>;

  parameter weight, bias;               ///< (channels)
  statistic running_mean, running_var;  ///< (channels)
  counter num_batches_tracked;          ///< 0
  Scalar eps = 1e-5, momentum = 0.1;
  TrainingFlag training;

  constexpr BasicInstanceNorm() = default;
  constexpr explicit BasicInstanceNorm(std::int64_t channels, Scalar epsilon = 1e-5,
                                       Scalar rate = 0.1)
      : weight(detail::make_state<parameter>({channels})),
        bias(detail::make_state<parameter>({channels})),
        running_mean(detail::make_state<statistic>({channels})),
        running_var(detail::make_state<statistic>({channels})),
        eps(epsilon),
        momentum(rate) {
    check_options(Axes == 1 ? "nn::InstanceNorm1d" : "nn::InstanceNorm2d",
                  {{"eps", epsilon.value()}, {"momentum", rate.value(), 0, 1}});
    if (__builtin_is_constant_evaluated()) return;
    if constexpr (O.affine) init::ones_(weight);
    if constexpr (O.track_running_stats) init::ones_(running_var);
  }
  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    static_assert(Axes != 1 || R == 3, "xla::nn::InstanceNorm1d: needs (N, C, L)");
    static_assert(Axes != 2 || R == 4, "xla::nn::InstanceNorm2d: needs (N, C, H, W)");
    if constexpr (O.track_running_stats && O.affine)
      return instance_norm(x, running_mean, running_var, weight, bias, training, momentum, eps,
                           loc);
    else if constexpr (O.track_running_stats)
      return instance_norm(x, running_mean, running_var, training, momentum, eps, loc);
    else if constexpr (O.affine) return instance_norm(x, weight, bias, eps, loc);
    else return instance_norm(x, eps, loc);
  }
  XLA_MODULE(weight, bias, running_mean, running_var, num_batches_tracked, eps, momentum, training)
};
using InstanceNorm1d = BasicInstanceNorm<float, 1>;
using InstanceNorm2d = BasicInstanceNorm<float, 2>;

}  // namespace xla::nn
