// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kullback-Leibler divergences in closed form, for the pairs of distributions that have one. Other
// pairs do not compile.

#include "xla/distributions/bernoulli.hpp"
#include "xla/distributions/categorical.hpp"
#include "xla/distributions/independent.hpp"
#include "xla/distributions/normal.hpp"
#include "xla/distributions/uniform.hpp"

// Each gradient that several operands share is added in a statement of its own: gradients add up in
// the order of the operations, and C++ leaves the order within an expression open.
namespace xla::distributions {

/// The divergence of q from p, in closed form, of two distributions whose sizes broadcast. Kullback
/// and Leibler (1951).
template <class T, int P, int Q>
constexpr auto kl_divergence(const Normal<T, P>& p, const Normal<T, Q>& q) {
  const auto ratio = p.scale / q.scale;
  const auto difference = (p.loc - q.loc) / q.scale;
  const auto squares = ratio * ratio + difference * difference;
  return (squares - 1) * 0.5 - log(ratio);
}

template <class T, int P, int Q>
constexpr auto kl_divergence(const Uniform<T, P>& p, const Uniform<T, Q>& q) {
  const auto outside = q.low > p.low || q.high < p.high;
  const auto from = p.entropy();
  return where(outside, std::numeric_limits<T>::infinity(), q.entropy() - from);
}

template <class T, int P, int Q>
constexpr auto kl_divergence(const Uniform<T, P>& p, const Normal<T, Q>& q) {
  const auto difference = p.mean() - q.loc;
  const auto squares = p.variance() + difference * difference;
  const auto from = p.entropy();
  const auto to = q.entropy();
  return to - 0.5 - from + squares / (q.scale * q.scale) * 0.5;
}
/// Infinite, because no uniform distribution covers all numbers.
template <class T, int P, int Q>
constexpr auto kl_divergence(const Normal<T, P>& p, const Uniform<T, Q>& q) {
  return full_like(p.loc - q.low, std::numeric_limits<T>::infinity());
}

template <class T, int P, int Q>
constexpr auto kl_divergence(const Bernoulli<T, P>& p, const Bernoulli<T, Q>& q) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const auto of_p = p.probs();
  const auto of_q = q.probs();
  const auto l = p.logits();
  const auto m = q.logits();
  const auto yes = of_p * (softplus(-m) - softplus(-l));
  const auto no = (1 - of_p) * (softplus(m) - softplus(l));
  return where(of_p == 0, 0, where(of_q == 0, infinity, yes)) +
         where(of_p == 1, 0, where(of_q == 1, infinity, no));
}

template <class T, int P, int Q>
constexpr auto kl_divergence(const Categorical<T, P>& p, const Categorical<T, Q>& q) {
  const auto of_p = p.probs();
  const auto of_q = q.probs();
  const auto l = p.logits();
  const auto m = q.logits();
  const auto each = of_p * (l - m);
  const auto finite = where(of_q == 0, std::numeric_limits<T>::infinity(), each);
  return sum(where(of_p == 0, 0, finite), {-1});
}

template <class P, class Q, int N>
constexpr auto kl_divergence(const Independent<P, N>& p, const Independent<Q, N>& q) {
  return sum_rightmost<N>(kl_divergence(p.base_dist, q.base_dist));
}

}  // namespace xla::distributions
