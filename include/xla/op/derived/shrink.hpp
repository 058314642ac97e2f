// SPDX-License-Identifier: Apache-2.0
#pragma once

// selu(), celu(), shrinking functions, threshold() and gumbel_softmax().

#include "xla/op/derived/activation.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/random.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// 1.0507 elu(x, 1.6733), which preserves mean and variance from layer to layer. Klambauer et al.
/// (2017).
template <class T, int R>
constexpr Tensor<T, R> selu(const Tensor<T, R>& x) {
  return elu(x, 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946;
}
/// x above 0, alpha expm1(x / alpha) below. Barron (2017).
template <class T, int R>
constexpr Tensor<T, R> celu(const Tensor<T, R>& x, double alpha = 1) {
  return elu(x * (1 / alpha), 1) * alpha;
}
/// x, and 0 where its magnitude is at most lambda.
template <class T, int R>
constexpr Tensor<T, R> hardshrink(const Tensor<T, R>& x, double lambda = 0.5) {
  static_assert(floating_type<T>, "xla::hardshrink: needs float or double; cast first");
  return where(x >= -lambda && x <= lambda, T{}, x);
}
/// x moved by lambda towards 0, and 0 where its magnitude is at most lambda.
template <class T, int R>
constexpr Tensor<T, R> softshrink(const Tensor<T, R>& x, double lambda = 0.5) {
  static_assert(floating_type<T>, "xla::softshrink: needs float or double; cast first");
  return where(x > lambda, x - lambda, where(x < -lambda, x + lambda, where(isnan(x), x, T{})));
}
/// x - tanh(x).
template <class T, int R>
constexpr Tensor<T, R> tanhshrink(const Tensor<T, R>& x) {
  return x - tanh(x);
}
/// x / (1 + |x|).
template <class T, int R>
constexpr Tensor<T, R> softsign(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::softsign: needs float or double; cast first");
  return x / (abs(x) + 1);
}
/// softmax(-x) along an axis.
template <class T, int R>
constexpr Tensor<T, R> softmin(const Tensor<T, R>& x, int axis = -1, caller loc = here()) {
  return softmax(-x, axis, loc);
}
/// x where it is above a threshold or NaN, elsewhere a value.
template <class T, int R>
constexpr Tensor<T, R> threshold(const Tensor<T, R>& x, double threshold, double value) {
  return where(x <= threshold, static_cast<T>(value), x);
}
/// x if positive, else x times a slope: drawn for each element from [lower, upper) in training,
/// else the middle. Xu et al. (2015).
template <class T, int R>
constexpr Tensor<T, R> rrelu(const Tensor<T, R>& x, double lower = 1. / 8, double upper = 1. / 3,
                             bool training = false) {
  static_assert(floating_type<T>, "xla::rrelu: needs float or double; cast first");
  if (!training) return where(x >= 0, x, x * ((lower + upper) / 2));
  return where(x >= 0, x, x * (rand_like(x) * (upper - lower) + lower));
}
/// A softened sample of the categories with logits x along an axis: softmax((x + Gumbel noise) /
/// tau). Jang, Gu and Poole (2017).
template <class T, int R>
constexpr Tensor<T, R> gumbel_softmax(const Tensor<T, R>& x, double tau = 1, int axis = -1,
                                      caller loc = here()) {
  static_assert(floating_type<T>, "xla::gumbel_softmax: needs float or double; cast first");
  // Uses 1 - rand(), which is never 0.
  const auto noise = -log(-log(1 - rand_like(x) * (1 - std::numeric_limits<T>::epsilon())));
  return softmax((x + noise) * (1 / tau), axis, loc);
}

}  // namespace xla
