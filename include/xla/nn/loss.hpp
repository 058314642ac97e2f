// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/derived/loss.hpp"

namespace xla::nn {

/// Mean cross-entropy between logits (batch, classes) and class numbers (batch).
struct CrossEntropyLoss {
  template <class T>
  constexpr Tensor<T, 0> operator()(const Tensor<T, 2>& logits,
                                    const Tensor<std::int64_t, 1>& target) const {
    return cross_entropy(logits, target);
  }
};

/// Mean squared error.
struct MSELoss {
  template <class T, int A, int B>
  constexpr Tensor<T, 0> operator()(const Tensor<T, A>& input, const Tensor<T, B>& target) const {
    return mse_loss(input, target);
  }
};

}  // namespace xla::nn
