// SPDX-License-Identifier: Apache-2.0
#pragma once

// binary_cross_entropy(), its form for logits, and kl_div().

#include "xla/op/derived/reduction.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/minmax.hpp"

namespace xla {
namespace detail {

/// -|x|, with slope 1 at 0 so that the gradient of log1p(exp(…)) there is right.
template <class T, int R>
constexpr Tensor<T, R> minus_abs(const Tensor<T, R>& x, const Tensor<bool, R>& above) {
  return where(above, -x, x);
}
/// log x, or the lowest number if x is not positive; the gradient there is 0.
template <class T, int R>
constexpr Tensor<T, R> bounded_log(const Tensor<T, R>& x, T lowest) {
  const auto positive = x > 0;
  return where(positive, maximum(log(where(positive, x, 1)), lowest), lowest);
}

}  // namespace detail

/// Cross-entropy between logits and probabilities in [0, 1] of the same sizes. Nothing overflows,
/// and small losses and gradients are not lost next to large logits. Other sizes are a shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto binary_cross_entropy_with_logits(const Tensor<T, A>& input,
                                                const Tensor<T, B>& target,
                                                Reduction reduction = {}, caller loc = here()) {
  detail::check_same_sizes(input, target, {"binary_cross_entropy_with_logits", loc});
  const auto above = input > 0;
  const auto rest = log1p(exp(detail::minus_abs(input, above)));
  return detail::reduce_loss(input * where(above, 1 - target, -target) + rest, reduction);
}
/// The same with the positive part of the loss multiplied by pos_weight, which broadcasts against
/// the input. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B, int P, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto binary_cross_entropy_with_logits(const Tensor<T, A>& input,
                                                const Tensor<T, B>& target,
                                                const Tensor<T, P>& pos_weight,
                                                Reduction reduction = {}, caller loc = here()) {
  detail::check_same_sizes(input, target, {"binary_cross_entropy_with_logits", loc});
  const auto above = input > 0;
  const auto rest = log1p(exp(detail::minus_abs(input, above)));
  const auto yes = detail::map_binary<op::mul, T>(target, pos_weight, loc), no = 1 - target;
  return detail::reduce_loss(input * where(above, no, -yes) + (no + yes) * rest, reduction);
}

/// Cross-entropy between two probabilities in [0, 1] of the same sizes; logarithms are at least
/// -100, as in PyTorch. The gradient of an input that is exactly 0 or 1 is bounded as well. Other
/// sizes are a shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto binary_cross_entropy(const Tensor<T, A>& input, const Tensor<T, B>& target,
                                    Reduction reduction = {}, caller loc = here()) {
  detail::check_same_sizes(input, target, {"binary_cross_entropy", loc});
  const auto yes = detail::bounded_log(input, T(-100));
  const auto no = detail::bounded_log(1 - input, T(-100));
  return detail::reduce_loss(-(target * yes + (1 - target) * no), reduction);
}

/// Divergence of the target's distribution from the input's: target (log target - input), where the
/// input is log-probabilities, and the target too if log_target. PyTorch divides by the number of
/// elements; reduction::batchmean is the mathematical divergence. Kullback and Leibler (1951).
/// Different sizes are a shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto kl_div(const Tensor<T, A>& input, const Tensor<T, B>& target,
                      Reduction reduction = {}, bool log_target = false, caller loc = here()) {
  detail::check_same_sizes(input, target, {"kl_div", loc});
  if (log_target) return detail::reduce_loss(exp(target) * (target - input), reduction);
  // 0 log 0 is 0.
  const auto positive = target > 0;
  const auto entropy = where(positive, target * log(where(positive, target, 1)), 0);
  return detail::reduce_loss(entropy - target * input, reduction);
}

}  // namespace xla
