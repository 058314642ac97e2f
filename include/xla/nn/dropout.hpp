// SPDX-License-Identifier: Apache-2.0
#pragma once

// Dropout and its forms for whole channels as layers. They draw in training mode only.

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/derived/dropout.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla::nn {

/// While training each element is 0 with probability p, and the others are divided by 1 - p; the
/// identity in evaluation.
struct Dropout {
  Scalar p = 0.5;
  TrainingFlag training;

  constexpr Dropout() = default;
  /// A probability outside [0, 1] is an xla::error.
  constexpr explicit Dropout(double probability) : p(probability) {
    check_options("nn::Dropout", {{"p", probability, 0, 1}});
  }
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return dropout(x, p, training);
  }
  XLA_HEADER_MODULE(p, training)
};

/// The same with whole channels of (N, C, L), with two Axes of (N, C, H, W), with three of volumes
/// (N, C, D, H, W). Tompson et al. (2015).
template <int Axes>
struct ChannelDropout {
  Scalar p = 0.5;
  TrainingFlag training;

  constexpr ChannelDropout() = default;
  /// A probability outside [0, 1] is an xla::error.
  constexpr explicit ChannelDropout(double probability) : p(probability) {
    check_options(Axes == 1   ? "nn::Dropout1d"
                  : Axes == 2 ? "nn::Dropout2d"
                              : "nn::Dropout3d",
                  {{"p", probability, 0, 1}});
  }
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    static_assert(Axes != 1 || R == 3, "xla::nn::Dropout1d: needs (N, C, L)");
    static_assert(Axes != 2 || R == 4, "xla::nn::Dropout2d: needs (N, C, H, W)");
    static_assert(Axes != 3 || R == 5, "xla::nn::Dropout3d: needs (N, C, D, H, W)");
    if constexpr (Axes == 1) return dropout1d(x, p, training);
    else if constexpr (Axes == 3) return dropout3d(x, p, training);
    else return dropout2d(x, p, training);
  }
  XLA_MODULE(p, training)
};
using Dropout1d = ChannelDropout<1>;
using Dropout2d = ChannelDropout<2>;
using Dropout3d = ChannelDropout<3>;

}  // namespace xla::nn
