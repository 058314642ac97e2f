// SPDX-License-Identifier: Apache-2.0
#pragma once

// softmax() and log_softmax(), composed of reductions and maps that plans fuse into one loop over
// rows.

#include "xla/op/exponential.hpp"
#include "xla/op/reduce.hpp"

namespace xla {
namespace detail {

/// The logarithm of softmax in two parts: z, which is x shifted by the largest element along an
/// axis so that nothing overflows, minus the logarithm of the sum of exp(z). An axis that does not
/// exist is a shape_error.
template <class T, int R>
struct log_softmax_parts {
  Tensor<T, R> z, log_total;

  constexpr Tensor<T, R> together() const { return z - log_total; }
};
template <class T, int R>
constexpr auto split_log_softmax(const Tensor<T, R>& x, int axis, caller loc) {
  const auto w = widened(x);
  const auto z = w - max(w, {axis}, keepdim, loc).detach();
  return log_softmax_parts<typename decltype(z)::value_type, R>{z,
                                                                log(sum(exp(z), {axis}, keepdim))};
}

}  // namespace detail

/// exp(x) over its sum along an axis, shifted by the largest element so that nothing overflows. An
/// axis that does not exist is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> softmax(const Tensor<T, R>& x, int axis = -1, caller loc = here()) {
  const int at = detail::axis_of(x, R, axis, {"softmax", loc});
  const auto w = detail::widened(x);
  const auto e = exp(w - max(w, {at}, keepdim).detach());
  return detail::narrowed<T>(e * (1 / sum(e, {at}, keepdim)));  // one division a row
}

/// The logarithm of softmax, computed without an intermediate exponential. An axis that does not
/// exist is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> log_softmax(const Tensor<T, R>& x, int axis = -1, caller loc = here()) {
  const int at = detail::axis_of(x, R, axis, {"log_softmax", loc});
  return detail::narrowed<T>(detail::split_log_softmax(x, at, loc).together());
}

}  // namespace xla
