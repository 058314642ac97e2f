// SPDX-License-Identifier: Apache-2.0
#pragma once

// dropout(), and dropout of whole channels.

#include "xla/op/random.hpp"
#include "xla/op/where.hpp"

namespace xla {
namespace detail {

/// Dropout with one draw for each element of a tensor of these sizes, which broadcasts.
template <class T, int R>
constexpr Tensor<T, R> drop(const Tensor<T, R>& x, const shape& draws, const number<T>& p) {
  using C = computed<T>;
  const Tensor<C, 0> gone = p.operand();
  const Tensor<C, 0> kept = 1 - gone;
  // With p = 1 nothing is kept, and the division by 0 is avoided.
  const Tensor<C, 0> scale = 1 / where(kept > 0, kept, 1);
  const auto stays = random<op::uniform, C, R>(draws, x.table()) >= gone;
  return narrowed<T>(where(stays, widened(x), 0) * scale);
}

template <class T, int R>
constexpr Tensor<T, R> drop_channels(const Tensor<T, R>& x, const number<T>& p, bool training,
                                     const char* wrong) {
  if (p.outside(0, 1)) refuse_now(x, wrong);
  if (!training) return x;
  shape draws = x.dims();
  for (int i = 2; i < R; ++i) draws[i] = 1;
  return drop(x, draws, p);
}

}  // namespace detail

/// x with each element set to 0 with probability p, and the others divided by 1 - p, so that the
/// mean is kept. Without training x itself. Srivastava et al. (2014).
template <class T, int R>
constexpr Tensor<T, R> dropout(const Tensor<T, R>& x, detail::number_of<T> p = 0.5,
                               bool training = true) {
  if (p.outside(0, 1)) refuse_now(x, "dropout: p is a probability, between 0 and 1");
  if (!training) return x;
  return detail::drop(x, x.dims(), p);
}

/// Dropout of whole channels of x (N, C, L), (N, C, H, W) or (N, C, D, H, W). Tompson et al.
/// (2015).
template <class T>
constexpr Tensor<T, 3> dropout1d(const Tensor<T, 3>& x, detail::number_of<T> p = 0.5,
                                 bool training = true) {
  return detail::drop_channels(x, p, training, "dropout1d: p is a probability, between 0 and 1");
}
template <class T>
constexpr Tensor<T, 4> dropout2d(const Tensor<T, 4>& x, detail::number_of<T> p = 0.5,
                                 bool training = true) {
  return detail::drop_channels(x, p, training, "dropout2d: p is a probability, between 0 and 1");
}
template <class T>
constexpr Tensor<T, 5> dropout3d(const Tensor<T, 5>& x, detail::number_of<T> p = 0.5,
                                 bool training = true) {
  return detail::drop_channels(x, p, training, "dropout3d: p is a probability, between 0 and 1");
}

}  // namespace xla
