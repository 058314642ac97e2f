// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/derived/norm.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// The p-norm of x - y + eps of vectors (…, d), broadcast: (…). Sizes that do not broadcast are a
/// shape_error.
template <class T, int A, int B>
constexpr auto pairwise_distance(const Tensor<T, A>& x, const Tensor<T, B>& y, double p = 2,
                                 double eps = 1e-6, caller who = here()) {
  return norm(detail::map_binary<op::sub, T>(x, y, who) + eps, p, {-1}, who);
}

/// x where target is 1, and relu(margin - x) where it is -1. Different sizes are a shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto hinge_embedding_loss(const Tensor<T, A>& x, const Tensor<T, B>& target,
                                    double margin = 1, Reduction reduction = {},
                                    caller who = here()) {
  detail::check_same_sizes(x, target, {"hinge_embedding_loss", who});
  const auto near = where(target == 1, x, T{}), far = where(target == -1, relu(margin - x), T{});
  return detail::reduce_loss(near + far, reduction);
}

/// log(1 + exp(-target x)), target 1 or -1. Different sizes are a shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto soft_margin_loss(const Tensor<T, A>& x, const Tensor<T, B>& target,
                                Reduction reduction = {}, caller who = here()) {
  detail::check_same_sizes(x, target, {"soft_margin_loss", who});
  return detail::reduce_loss(softplus(-target * x), reduction);
}

/// The mean over classes of the binary cross entropy of logits (batch, classes) against targets 0
/// or 1. Different sizes are a shape_error.
template <class T, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto multilabel_soft_margin_loss(const Tensor<T, 2>& x, const Tensor<T, 2>& target,
                                           Reduction reduction = {}, caller who = here()) {
  detail::check_same_sizes(x, target, {"multilabel_soft_margin_loss", who});
  const auto loss = target * softplus(-x) + (1 - target) * softplus(x);
  return detail::reduce_loss(mean(loss, {1}), reduction);
}

}  // namespace xla
