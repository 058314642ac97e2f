// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tags that say whether a parameter is probabilities or logits, which have the same type. Bernoulli
// and Categorical take them.

#include <limits>

#include "xla/distributions/parameter.hpp"
#include "xla/op/clip.hpp"

namespace xla::distributions {

/// Says of a distribution's parameter that it is probabilities, or logits: Categorical(logits(x)).
template <class T, int R>
struct probs_parameter {
  Tensor<T, R> value;
};
template <class T, int R>
struct logits_parameter {
  Tensor<T, R> value;
};
template <class X>
concept labelled_parameter = tensor_parameter<decltype(X::value)>;

template <parameter X>
constexpr auto probs(const X& x) {
  using T = element_of<X, X>;
  return probs_parameter<T, parameter_facts<X>::rank>{as_tensor<T>(x)};
}
template <parameter X>
constexpr auto logits(const X& x) {
  using T = element_of<X, X>;
  return logits_parameter<T, parameter_facts<X>::rank>{as_tensor<T>(x)};
}

/// Probabilities kept away from 0 and 1 by the rounding of 1, so that their logarithms are finite.
template <class T, int R>
constexpr Tensor<T, R> clamp_probs(const Tensor<T, R>& p) {
  constexpr T eps = std::numeric_limits<T>::epsilon();
  return clamp(p, eps, 1 - eps);
}

}  // namespace xla::distributions
