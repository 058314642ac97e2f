// SPDX-License-Identifier: Apache-2.0
#pragma once

// sigmoid(), softplus() and logsigmoid(): elementwise ops.

#include "xla/op/where.hpp"

namespace xla {
template <class T, int R>
constexpr Tensor<T, R> sigmoid(const Tensor<T, R>& x);
}  // namespace xla

namespace xla::op {

struct sigmoid : map {
  static constexpr auto name = "sigmoid";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.like(1) / (a.like(1) + (-a).exp()); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * (g.out() * (1 - g.out()))); }
};

struct softplus : map {
  static constexpr auto name = "softplus";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto a) { return a.max(a.like(0)) + (-a.abs()).exp().log1p(); }
  static constexpr void gradient(auto& g) { g.to(0, g.grad() * xla::sigmoid(g.in(0))); }
};

}  // namespace xla::op

XLA_OP(xla::op::sigmoid, fractions);
XLA_OP(xla::op::softplus, fractions);

namespace xla {

/// 1 / (1 + exp(-x)) of each element. Within 3 ulp.
template <class T, int R>
constexpr Tensor<T, R> sigmoid(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::sigmoid: needs float or double; cast first");
  return detail::apply<op::sigmoid, T, T, R>(detail::plain, x);
}

/// log(1 + exp(beta x)) / beta of each element, without overflow; x itself if beta x exceeds the
/// threshold. Within 3 ulp up to there.
template <class T, int R>
constexpr Tensor<T, R> softplus(const Tensor<T, R>& x, detail::number_of<T> beta = 1,
                                detail::number_of<T> threshold = 20) {
  static_assert(floating_type<T>, "xla::softplus: needs float or double; cast first");
  const auto z = beta.is(1) ? x : x * beta;
  const Tensor<T, R> y = detail::apply<op::softplus, T, T, R>(detail::plain, z);
  return where(z > threshold, x, beta.is(1) ? y : y / beta);
}

/// log(sigmoid(x)) of each element.
template <class T, int R>
constexpr Tensor<T, R> logsigmoid(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::logsigmoid: needs float or double; cast first");
  return -detail::apply<op::softplus, T, T, R>(detail::plain, -x);
}

}  // namespace xla
