// SPDX-License-Identifier: Apache-2.0
#pragma once

// nn::Bilinear. Not in xla.hpp.

#include <cmath>
#include <cstdint>

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/derived/einsum.hpp"

namespace xla::nn {

/// y = x1ᵀ weight x2 + bias for each output: (n, in1) and (n, in2) to (n, out), as
/// torch.nn.Bilinear, with its initialisation. Other sizes are a shape_error.
template <class T>
struct BasicBilinear {
  using value_type = T;
  Parameter<T, 3> weight;  ///< (out, in1, in2)
  Parameter<T, 1> bias;    ///< (out)

  constexpr BasicBilinear() = default;
  constexpr BasicBilinear(std::int64_t in1, std::int64_t in2, std::int64_t out)
      : weight({out, in1, in2}), bias({out}) {
    check_options("nn::Bilinear", {{"in1_features", static_cast<double>(in1), 1}});
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// Uniform within one over the square root of in1.
  void reset_parameters() {
    const double in1 = static_cast<double>(std::int64_t(weight.size(1)));
    const T bound = static_cast<T>(1 / std::sqrt(in1));
    init::uniform_(weight, -bound, bound);
    init::uniform_(bias, -bound, bound);
  }
  constexpr Tensor<T, 2> operator()(const Tensor<T, 2>& x1, const Tensor<T, 2>& x2) const {
    return einsum<"ni,oij,nj->no">(x1, weight, x2) + bias;
  }
  XLA_MODULE(weight, bias)
};
using Bilinear = BasicBilinear<float>;

}  // namespace xla::nn
