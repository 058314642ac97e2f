// SPDX-License-Identifier: Apache-2.0
#pragma once

// AlphaDropout and FeatureAlphaDropout as layers. Not in xla.hpp.

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/derived/alpha_dropout.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla::nn {

/// Dropout for SELU: see alpha_dropout(). With Channels whole channels of (N, C, …).
template <bool Channels>
struct BasicAlphaDropout {
  Scalar p = 0.5;
  TrainingFlag training;

  constexpr BasicAlphaDropout() = default;
  /// A probability outside [0, 1] is an xla::error.
  constexpr explicit BasicAlphaDropout(double probability) : p(probability) {
    check_options(Channels ? "nn::FeatureAlphaDropout" : "nn::AlphaDropout",
                  {{"p", probability, 0, 1}});
  }
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    if constexpr (Channels) return feature_alpha_dropout(x, p, training);
    else return alpha_dropout(x, p, training);
  }
  XLA_MODULE(p, training)
};
using AlphaDropout = BasicAlphaDropout<false>;
using FeatureAlphaDropout = BasicAlphaDropout<true>;

}  // namespace xla::nn
