// SPDX-License-Identifier: Apache-2.0
#pragma once

// Activations as layers, for nn::Sequential. The functions are in op/ and
// op/derived/activation.hpp.

#include "xla/module.hpp"
#include "xla/op/derived/activation.hpp"
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

struct ReLU6 {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return relu6(x);
  }
};

struct Hardsigmoid {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return hardsigmoid(x);
  }
};

struct Hardswish {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return hardswish(x);
  }
};

struct Tanh {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return tanh(x);
  }
};

struct Sigmoid {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return sigmoid(x);
  }
};

struct LogSigmoid {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return logsigmoid(x);
  }
};

struct GELU {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return gelu(x);
  }
};

/// PyTorch's GELU(approximate='tanh').
struct GELUTanh {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return gelu(x, approximate_tanh);
  }
};

struct SiLU {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return silu(x);
  }
};

struct LeakyReLU {
  Scalar negative_slope = 0.01;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return leaky_relu(x, negative_slope);
  }
  XLA_HEADER_MODULE(negative_slope)
};

struct ELU {
  Scalar alpha = 1;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return elu(x, alpha);
  }
  XLA_HEADER_MODULE(alpha)
};

struct Hardtanh {
  Scalar min_val = -1, max_val = 1;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return hardtanh(x, min_val, max_val);
  }
  XLA_HEADER_MODULE(min_val, max_val)
};

struct Softplus {
  Scalar beta = 1, threshold = 20;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return softplus(x, beta, threshold);
  }
  XLA_HEADER_MODULE(beta, threshold)
};

/// Softmax over the last axis.
struct Softmax {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return softmax(x);
  }
};

/// The logarithm of Softmax over the last axis.
struct LogSoftmax {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return log_softmax(x);
  }
};

}  // namespace xla::nn
