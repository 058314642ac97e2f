// SPDX-License-Identifier: Apache-2.0
#pragma once

// alpha_dropout() and feature_alpha_dropout(), composed of other ops.

#include "xla/op/derived/dropout.hpp"
#include "xla/op/root.hpp"
#include "xla/op/slice.hpp"

namespace xla {
namespace detail {

/// Dropout to the least value of SELU, with one draw for each element of a tensor of these sizes,
/// which broadcasts.
template <class T, int R>
constexpr Tensor<T, R> drop_to_least(const Tensor<T, R>& x, const shape& draws,
                                     const number<T>& p) {
  static_assert(std::is_floating_point_v<T>, "xla: alpha_dropout needs float or double");
  constexpr double least = 1.0507009873554804934 * 1.6732632423543772848;
  const Tensor<T, 0> gone = with_table(p.operand(), x.table()), kept = 1 - gone;
  const Tensor<bool, 0> any = kept > 0;  // with p = 1 all is 0
  const auto scale = where(any, rsqrt(where(any, (gone * (least * least) + 1) * kept, 1)), 0);
  const auto stays = random<op::uniform, T, R>(draws, x.table()) >= gone;
  return where(stays, x, static_cast<T>(-least)) * scale + gone * scale * least;
}

}  // namespace detail

/// x with each element replaced by -1.7581, SELU's least value, with probability p, then scaled and
/// shifted so that mean 0 and variance 1 are kept. Without training x itself. Klambauer et al.
/// (2017).
template <class T, int R>
constexpr Tensor<T, R> alpha_dropout(const Tensor<T, R>& x, detail::number_of<T> p = 0.5,
                                     bool training = false) {
  if (p.outside(0, 1)) refuse_now(x, "alpha_dropout: p is a probability, between 0 and 1");
  if (!training) return x;
  return detail::drop_to_least<T, R>(x, x.dims(), p);
}

/// alpha_dropout() of whole channels of x (N, C, …).
template <class T, int R>
constexpr Tensor<T, R> feature_alpha_dropout(const Tensor<T, R>& x, detail::number_of<T> p = 0.5,
                                             bool training = false) {
  static_assert(R >= 2, "xla::feature_alpha_dropout: needs (N, C, …)");
  if (p.outside(0, 1)) refuse_now(x, "feature_alpha_dropout: p is a probability, between 0 and 1");
  if (!training) return x;
  detail::shape draws = x.dims();
  for (int i = 2; i < R; ++i) draws[i] = 1;
  return detail::drop_to_least<T, R>(x, draws, p);
}

}  // namespace xla
