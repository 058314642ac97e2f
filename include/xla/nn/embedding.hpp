// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/embedding.hpp"

namespace xla::nn {

/// A table of vectors: indices of any shape to the same shape with one more axis, width.
template <class T>
struct BasicEmbedding {
  using value_type = T;
  Parameter<T, 2> weight;  ///< (count, width)

  constexpr BasicEmbedding() = default;
  constexpr BasicEmbedding(std::int64_t count, std::int64_t width) : weight({count, width}) {
    if (!__builtin_is_constant_evaluated()) init::normal_(weight);
  }
  template <int R>
  constexpr Tensor<T, R + 1> operator()(const Tensor<std::int64_t, R>& index,
                                        caller who = here()) const {
    return embedding(index, weight, who);
  }
  XLA_MODULE(weight)
};
using Embedding = BasicEmbedding<float>;

}  // namespace xla::nn
