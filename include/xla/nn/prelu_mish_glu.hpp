// SPDX-License-Identifier: Apache-2.0
#pragma once

// PReLU, whose slope is learned, Mish and GLU as layers. Not in xla.hpp.

#include <cstdint>

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/derived/prelu_mish_glu.hpp"

namespace xla::nn {

/// x where it is above 0, elsewhere x times a weight that is learned: one, or one for each index
/// along axis 1. Another number than one or that is a shape_error.
template <class T>
struct BasicPReLU {
  using value_type = T;
  Parameter<T, 1> weight;  ///< (num_parameters)

  constexpr BasicPReLU() : BasicPReLU(1) {}
  constexpr explicit BasicPReLU(std::int64_t num_parameters, double init = 0.25)
      : weight({num_parameters}) {
    check_options("nn::PReLU", {{"num_parameters", static_cast<double>(num_parameters), 1}});
    if (!__builtin_is_constant_evaluated()) xla::nn::init::constant_(weight, static_cast<T>(init));
  }
  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return prelu(x, weight, loc);
  }
  XLA_MODULE(weight)
};
using PReLU = BasicPReLU<float>;

struct Mish {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return mish(x);
  }
};

/// The first half along an axis times the sigmoid of the second.
struct GLU {
  int dim = -1;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return glu(x, dim, loc);
  }
  XLA_HEADER_MODULE(dim)
};

}  // namespace xla::nn
