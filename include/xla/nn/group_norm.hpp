// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/option.hpp"
#include "xla/nn/init.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/derived/group_norm.hpp"

namespace xla::nn {

/// Each of Groups equal groups of the channels of (N, C, …) with mean 0 and variance 1 in every
/// sample, then times weight plus bias where it is Affine. Channels that are not a multiple of
/// Groups are an xla::error, another number of them a shape_error. Wu and He (2018).
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
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller who = here()) const {
    if constexpr (Affine) return group_norm(x, Groups, weight, bias, eps, who);
    else return group_norm(x, Groups, eps, who);
  }
  XLA_MODULE(weight, bias, eps)
};
template <int Groups>
using GroupNorm = BasicGroupNorm<float, Groups>;

/// Each channel of (N, C, L), with two Axes of (N, C, H, W), with mean 0 and variance 1 in every
/// sample, then times weight plus bias where it is Affine, which it is not by default. Another
/// number of channels, where it is, is a shape_error, and so are channels of one element. Ulyanov
/// et al. (2016).
template <class T, int Axes, bool Affine = false>
struct BasicInstanceNorm {
  using value_type = T;
  using parameter = detail::state_if<Affine, Parameter<T, 1>>;
  parameter weight, bias;  ///< (channels)
  Scalar eps = 1e-5;

  constexpr BasicInstanceNorm() = default;
  constexpr explicit BasicInstanceNorm(std::int64_t channels, Scalar epsilon = 1e-5)
      : weight(detail::make_state<parameter>({channels})),
        bias(detail::make_state<parameter>({channels})),
        eps(epsilon) {
    check_options(Axes == 1 ? "nn::InstanceNorm1d" : "nn::InstanceNorm2d",
                  {{"eps", epsilon.value()}});
    if constexpr (Affine)
      if (!__builtin_is_constant_evaluated()) init::ones_(weight);
  }
  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller who = here()) const {
    static_assert(Axes != 1 || R == 3, "xla::nn::InstanceNorm1d: needs (N, C, L)");
    static_assert(Axes != 2 || R == 4, "xla::nn::InstanceNorm2d: needs (N, C, H, W)");
    if constexpr (Affine) return instance_norm(x, weight, bias, eps, who);
    else return instance_norm(x, eps, who);
  }
  XLA_MODULE(weight, bias, eps)
};
using InstanceNorm1d = BasicInstanceNorm<float, 1>;
using InstanceNorm2d = BasicInstanceNorm<float, 2>;

}  // namespace xla::nn
