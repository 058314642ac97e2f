// SPDX-License-Identifier: Apache-2.0
#pragma once

// Masks and softmax of attention's scores as plain ops. derived/attention.hpp uses it where the
// fused op does not apply, and so does the second derivative.

#include <limits>

#include "xla/op/derived/softmax.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/root.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/where.hpp"

namespace xla::detail {

/// softmax over the last axis that ignores -infinity; a row of nothing else is 0.
template <class T, int R>
constexpr Tensor<T, R> shown_softmax(const Tensor<T, R>& shown) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  const auto top = max(shown, {-1}, keepdim).detach();
  const auto e = exp(shown - where(top == hidden, 0, top));
  const auto total = sum(e, {-1}, keepdim);
  return e / where(total == 0, 1, total);
}
/// The same for elements that the mask shows.
template <class T, int R, int M>
constexpr Tensor<T, R> masked_softmax(const Tensor<T, R>& x, const Tensor<bool, M>& mask,
                                      caller loc) {
  return shown_softmax(where(mask, x, -std::numeric_limits<T>::infinity(), loc));
}

/// Which keys (second axis) each query (first axis) attends to: those not after its position.
template <class T>
constexpr Tensor<bool, 2> causal_mask(const Tensor<T, 1>& positions, Size keys) {
  return unsqueeze(positions, 1) >= arange<T>(keys);
}
template <class T>
constexpr Tensor<bool, 2> causal_mask(Size queries, Size keys) {
  return causal_mask(arange<T>(queries), keys);
}
/// softmax of scores (…, queries, keys) over keys that the mask shows: at least one for each query.
template <class T, int R>
constexpr Tensor<T, R> causal_softmax(const Tensor<T, R>& scores, const Tensor<bool, 2>& mask) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  return softmax(where(mask, scores, hidden));
}

/// The factor of scores: 1 / √width.
template <class T>
constexpr Tensor<T, 0> score_scale(Size width, size_table* table) {
  return with_table(Tensor<T, 0>(rsqrt(number_of<T>(width).tensor())), table);
}

}  // namespace xla::detail
