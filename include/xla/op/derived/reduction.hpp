// SPDX-License-Identifier: Apache-2.0
#pragma once

// The reduction argument of losses: mean, sum, none. The losses of derived/ apply it last.

#include "xla/op/reduce.hpp"

/// How the losses per element are reduced, by PyTorch's names: l1_loss(x, y, xla::reduction::none).
namespace xla::reduction {

struct mean_t {};
struct sum_t {};
struct none_t {};
struct batchmean_t {};

inline constexpr mean_t mean{};            ///< one number: the mean over all elements
inline constexpr sum_t sum{};              ///< one number: the sum
inline constexpr none_t none{};            ///< one loss per element
inline constexpr batchmean_t batchmean{};  ///< the sum over the size of the first axis; kl_div only

}  // namespace xla::reduction

namespace xla::detail {

template <class X>
concept loss_reduction =
    std::is_same_v<X, reduction::mean_t> || std::is_same_v<X, reduction::sum_t> ||
    std::is_same_v<X, reduction::none_t> || std::is_same_v<X, reduction::batchmean_t>;

template <class T, int R>
constexpr Tensor<T, 0> reduce_loss(const Tensor<T, R>& loss, reduction::mean_t) {
  return mean(loss);
}
template <class T, int R>
constexpr Tensor<T, 0> reduce_loss(const Tensor<T, R>& loss, reduction::sum_t) {
  return sum(loss);
}
template <class T, int R>
constexpr Tensor<T, R> reduce_loss(const Tensor<T, R>& loss, reduction::none_t) {
  return loss;
}
template <class T, int R>
constexpr Tensor<T, 0> reduce_loss(const Tensor<T, R>& loss, reduction::batchmean_t) {
  return sum(loss) / loss.size(0);
}

/// Refuses an input and a target of different sizes, which would broadcast.
template <class T, int A, int B>
constexpr void check_same_sizes(const Tensor<T, A>& input, const Tensor<T, B>& target,
                                const call_site& site) {
  static_assert(A == B,
                "xla: a loss's input and target have different numbers of axes; write "
                "xla::squeeze<1>(input) or xla::unsqueeze(target, 1)");
  const shape a = input.dims(), b = target.dims();
  const size_scope scope{input.table() ? input.table() : target.table(), site};
  if (!scope.same(a, b))
    scope.fail(text("input ") << a << " and target " << b << " have different sizes");
}

}  // namespace xla::detail
