// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/derived/softmax.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/tanh.hpp"

namespace xla::nn {

struct ReLU {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return relu(x);
  }
};

struct Tanh {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return tanh(x);
  }
};

/// Softmax over the last axis.
struct Softmax {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return softmax(x);
  }
};

}  // namespace xla::nn
