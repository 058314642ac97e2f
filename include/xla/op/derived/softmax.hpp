// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/exponential.hpp"
#include "xla/op/reduce.hpp"

namespace xla {

/// exp(x) over its sum along an axis, shifted by the largest element so that nothing overflows.
template <class T, int R>
constexpr Tensor<T, R> softmax(const Tensor<T, R>& x, int axis = -1, caller who = here()) {
  const auto w = detail::widened(x);
  const auto e = exp(w - max(w, {axis}, keepdim, who).detach());
  return detail::narrowed<T>(e / sum(e, {axis}, keepdim));
}

/// The logarithm of softmax, computed without leaving the logarithm.
template <class T, int R>
constexpr Tensor<T, R> log_softmax(const Tensor<T, R>& x, int axis = -1, caller who = here()) {
  const auto w = detail::widened(x);
  const auto z = w - max(w, {axis}, keepdim, who).detach();
  return detail::narrowed<T>(z - log(sum(exp(z), {axis}, keepdim)));
}

}  // namespace xla
