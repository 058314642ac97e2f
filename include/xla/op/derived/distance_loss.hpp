// SPDX-License-Identifier: Apache-2.0
#pragma once

// mse_loss(), l1_loss(), huber_loss() and smooth_l1_loss().

#include <limits>

#include "xla/op/abs.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/derived/reduction.hpp"

namespace xla {

/// Squared differences; input and target have the same sizes, as in all losses here. Others are a
/// shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto mse_loss(const Tensor<T, A>& input, const Tensor<T, B>& target,
                        Reduction reduction = {}, caller loc = here()) {
  detail::check_same_sizes(input, target, {"mse_loss", loc});
  const auto d = input - target;
  return detail::reduce_loss(d * d, reduction);
}

/// Magnitudes of the differences; the gradient of a difference of 0 is 0. Errors as in mse_loss.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto l1_loss(const Tensor<T, A>& input, const Tensor<T, B>& target,
                       Reduction reduction = {}, caller loc = here()) {
  detail::check_same_sizes(input, target, {"l1_loss", loc});
  return detail::reduce_loss(abs(input - target), reduction);
}

namespace detail {
template <class T>
constexpr bool above_zero(const number<T>& n) {
  return !n.outside(std::numeric_limits<double>::denorm_min(),
                    std::numeric_limits<double>::infinity());
}

/// d² / 2 up to |d| = delta, beyond that delta (|d| - delta / 2). No branch can overflow alone.
template <class T, int R>
constexpr Tensor<T, R> huber(const Tensor<T, R>& difference, const Tensor<T, 0>& delta) {
  const auto near = clamp(difference, -delta, delta);
  return near * (difference - near * 0.5);
}
}  // namespace detail

/// Half the squared difference up to delta, linear beyond; delta is above 0. Huber (1964). Errors
/// as in mse_loss.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto huber_loss(const Tensor<T, A>& input, const Tensor<T, B>& target,
                          detail::number_of<T> delta = 1, Reduction reduction = {},
                          caller loc = here()) {
  detail::check_same_sizes(input, target, {"huber_loss", loc});
  if (!detail::above_zero(delta)) refuse_now(input, "huber_loss: delta is above 0");
  return detail::reduce_loss(detail::huber(input - target, delta.tensor()), reduction);
}

/// huber_loss over beta, which is above 0: of slope 1 beyond it. Girshick (2015). Errors as in
/// mse_loss.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto smooth_l1_loss(const Tensor<T, A>& input, const Tensor<T, B>& target,
                              detail::number_of<T> beta = 1, Reduction reduction = {},
                              caller loc = here()) {
  detail::check_same_sizes(input, target, {"smooth_l1_loss", loc});
  if (!detail::above_zero(beta)) refuse_now(input, "smooth_l1_loss: beta is above 0");
  const Tensor<T, 0> b = beta.tensor();
  return detail::reduce_loss(detail::huber(input - target, b) / b, reduction);
}

}  // namespace xla
