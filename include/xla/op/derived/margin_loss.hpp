// SPDX-License-Identifier: Apache-2.0
#pragma once

// Losses of margins, of one class or several.

#include "xla/op/derived/any_all.hpp"
#include "xla/op/derived/indexing.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// x where target is 1, and relu(margin - x) where it is -1. Different sizes are a shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto hinge_embedding_loss(const Tensor<T, A>& x, const Tensor<T, B>& target,
                                    double margin = 1, Reduction reduction = {},
                                    caller loc = here()) {
  detail::check_same_sizes(x, target, {"hinge_embedding_loss", loc});
  const auto near = where(target == 1, x, T{}), far = where(target == -1, relu(margin - x), T{});
  return detail::reduce_loss(near + far, reduction);
}

/// log(1 + exp(-target x)), target 1 or -1. Different sizes are a shape_error.
template <class T, int A, int B, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto soft_margin_loss(const Tensor<T, A>& x, const Tensor<T, B>& target,
                                Reduction reduction = {}, caller loc = here()) {
  detail::check_same_sizes(x, target, {"soft_margin_loss", loc});
  return detail::reduce_loss(softplus(-target * x), reduction);
}

/// The mean over classes of the binary cross entropy of logits (batch, classes) against targets 0
/// or 1. Different sizes are a shape_error.
template <class T, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto multilabel_soft_margin_loss(const Tensor<T, 2>& x, const Tensor<T, 2>& target,
                                           Reduction reduction = {}, caller loc = here()) {
  detail::check_same_sizes(x, target, {"multilabel_soft_margin_loss", loc});
  const auto loss = target * softplus(-x) + (1 - target) * softplus(x);
  return detail::reduce_loss(mean(loss, {1}), reduction);
}

/// How multi_margin_loss measures, by PyTorch's names.
struct MultiMarginOptions {
  double p = 1;  ///< the power of each term
  Scalar margin = 1;
};
namespace detail {
template <class T, class Reduction>
constexpr auto multi_margin(const Tensor<T, 2>& x, const Tensor<std::int64_t, 1>& target,
                            const Tensor<T, 1>* weight, const MultiMarginOptions& how,
                            Reduction reduction, caller loc) {
  const auto classes = unsqueeze(target, 1);
  const auto near = relu(how.margin - gather(x, 1, classes, loc) + x);
  auto loss = how.p == 1 ? near : pow(near, how.p);
  if (weight) loss = loss * unsqueeze(index_select(*weight, 0, target, loc), 1);
  const auto itself = one_hot(target, x.size(1), loc) == 1;
  return reduce_loss(mean(where(itself, T{}, loss), {1}), reduction);
}
}  // namespace detail

/// The mean over the classes of relu(margin - x[target] + x[class])^p, except the target itself,
/// for x (batch, classes) and class numbers (batch); each weighted by its target's weight if there
/// is one. A class outside [0, classes) is an index_error.
template <class T, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto multi_margin_loss(const Tensor<T, 2>& x, const Tensor<std::int64_t, 1>& target,
                                 const MultiMarginOptions& how = {}, Reduction reduction = {},
                                 caller loc = here()) {
  return detail::multi_margin<T>(x, target, nullptr, how, reduction, loc);
}
template <class T, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto multi_margin_loss(const Tensor<T, 2>& x, const Tensor<std::int64_t, 1>& target,
                                 const Tensor<T, 1>& weight, const MultiMarginOptions& how = {},
                                 Reduction reduction = {}, caller loc = here()) {
  return detail::multi_margin<T>(x, target, &weight, how, reduction, loc);
}

/// The sum of relu(1 - x[target] + x[class]) over all targets and all other classes, divided by the
/// number of classes. x is (batch, classes), target has the same sizes: the numbers of a row's
/// classes, then -1. A class that does not exist is an index_error, other sizes are a shape_error.
template <class T, detail::loss_reduction Reduction = reduction::mean_t>
constexpr auto multilabel_margin_loss(const Tensor<T, 2>& x, const Tensor<std::int64_t, 2>& target,
                                      Reduction reduction = {}, caller loc = here()) {
  detail::check_same_sizes(x, cast<T>(target), {"multilabel_margin_loss", loc});
  const auto given = cumsum(cast<std::int64_t>(target < 0), 1, loc) == 0;
  const auto number = where(given, target, 0);
  const auto hits = one_hot(number, x.size(1), loc) == 1 && unsqueeze(given, 2);
  const auto other = !any(hits, {1});
  const auto margins = 1 - unsqueeze(gather(x, 1, number, loc), 2) + unsqueeze(x, 1);
  const auto counts = unsqueeze(given, 2) && unsqueeze(other, 1);
  return detail::reduce_loss(sum(where(counts, relu(margins), T{}), {1, 2}) / x.size(1), reduction);
}

}  // namespace xla
