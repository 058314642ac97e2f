// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/matmul.hpp"

namespace xla::nn {

/// y = x weightᵀ + bias: (…, in) to (…, out), as torch.nn.Linear, with its initialisation.
struct Linear {
  Parameter<float, 2> weight;  ///< (out, in)
  Parameter<float, 1> bias;    ///< (out)

  constexpr Linear() = default;
  template <class N = Size>
  constexpr Linear(std::int64_t in, std::int64_t out) : weight({N(out), N(in)}), bias({N(out)}) {
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// Uniform within one over the square root of in, weight and bias (He et al. 2015, a = sqrt 5).
  template <class = void>
  void reset_parameters() {
    const float bound = 1 / std::sqrt(static_cast<float>(std::int64_t(weight.size(1))));
    init::uniform_(weight, -bound, bound);
    init::uniform_(bias, -bound, bound);
  }
  template <int R>
  constexpr Tensor<float, R> operator()(const Tensor<float, R>& x, caller who = here()) const {
    return linear(x, weight, bias, who);
  }
  XLA_HEADER_MODULE(weight, bias)
};

/// y = x weightᵀ: torch.nn.Linear with bias=False.
struct LinearNoBias {
  Parameter<float, 2> weight;  ///< (out, in)

  constexpr LinearNoBias() = default;
  template <class N = Size>
  constexpr LinearNoBias(std::int64_t in, std::int64_t out) : weight({N(out), N(in)}) {
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// Uniform within one over the square root of in.
  template <class = void>
  void reset_parameters() {
    const float bound = 1 / std::sqrt(static_cast<float>(std::int64_t(weight.size(1))));
    init::uniform_(weight, -bound, bound);
  }
  template <int R>
  constexpr Tensor<float, R> operator()(const Tensor<float, R>& x, caller who = here()) const {
    return linear(x, weight, who);
  }
  XLA_HEADER_MODULE(weight)
};

}  // namespace xla::nn
