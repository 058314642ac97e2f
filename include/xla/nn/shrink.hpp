// SPDX-License-Identifier: Apache-2.0
#pragma once

// SELU, CELU, shrinking functions and thresholds as layers. Not in xla.hpp.

#include "xla/module.hpp"
#include "xla/op/derived/shrink.hpp"
#include "xla/run/trace/runtime.hpp"

// The activations of op/derived/shrink.hpp as layers.
namespace xla::nn {

struct SELU {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return selu(x);
  }
};

struct Softsign {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return softsign(x);
  }
};

struct Tanhshrink {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return tanhshrink(x);
  }
};

struct CELU {
  double alpha = 1;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return celu(x, alpha);
  }
  XLA_HEADER_MODULE(alpha)
};

struct Hardshrink {
  double lambda = 0.5;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return hardshrink(x, lambda);
  }
  XLA_HEADER_MODULE(lambda)
};

struct Softshrink {
  double lambda = 0.5;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return softshrink(x, lambda);
  }
  XLA_HEADER_MODULE(lambda)
};

/// x where it exceeds a threshold, elsewhere a value: nn::Threshold{0.1, 20}.
struct Threshold {
  double threshold = 0, value = 0;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return xla::threshold(x, threshold, value);
  }
  XLA_HEADER_MODULE(threshold, value)
};

/// softmin along an axis.
struct Softmin {
  int dim = -1;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return softmin(x, dim, loc);
  }
  XLA_HEADER_MODULE(dim)
};

/// softmax over the channels of images (N, C, H, W), or (C, H, W).
struct Softmax2d {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    static_assert(R == 3 || R == 4, "xla::nn::Softmax2d: needs (N, C, H, W), or (C, H, W)");
    return softmax(x, -3, loc);
  }
};

/// A random negative slope for each element while training, the mean slope in evaluation.
struct RReLU {
  double lower = 1. / 8, upper = 1. / 3;
  TrainingFlag training;

  constexpr RReLU() = default;
  constexpr RReLU(double low, double high) : lower(low), upper(high) {}
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return rrelu(x, lower, upper, training);
  }
  XLA_HEADER_MODULE(lower, upper, training)
};

}  // namespace xla::nn
