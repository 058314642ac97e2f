// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/derived/dropout.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla::nn {

/// While training each element is 0 with probability p, the others are divided by 1 - p; the
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

}  // namespace xla::nn
