// SPDX-License-Identifier: Apache-2.0
#pragma once

// nn::Embedding. Its gradient is dense.

#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/embedding.hpp"

namespace xla::nn {

/// A table of vectors: indices of any shape to the same shape with one more axis, width. The row
/// padding_idx (negative: from the end) is 0 and gets no gradient. An index outside of [0, count)
/// is an index_error.
template <class T>
struct BasicEmbedding {
  using value_type = T;
  Parameter<T, 2> weight;         ///< (count, width)
  std::int64_t padding_idx = -1;  ///< -1: none

  constexpr BasicEmbedding() = default;
  constexpr BasicEmbedding(std::int64_t count, std::int64_t width) : weight({count, width}) {
    check_options("nn::Embedding", {{"count", static_cast<double>(count), 1},
                                    {"width", static_cast<double>(width), 1}});
    if (!__builtin_is_constant_evaluated()) init::normal_(weight);
  }
  constexpr BasicEmbedding(std::int64_t count, std::int64_t width, std::int64_t padding)
      : BasicEmbedding(count, width) {
    if (padding < -count || padding >= count)
      throw runtime_error("nn::Embedding: padding_idx is outside [-count, count)");
    padding_idx = padding < 0 ? padding + count : padding;
    if (!__builtin_is_constant_evaluated()) fill_row_(weight, padding_idx, T(0));
  }
  template <int R>
  constexpr Tensor<T, R + 1> operator()(const Tensor<std::int64_t, R>& index,
                                        caller loc = here()) const {
    if (padding_idx < 0) return embedding(index, weight, loc);
    return embedding(index, weight, padding_idx, loc);
  }
  /// Stops the build, because indices are std::int64_t.
  template <element U, int R>
    requires(!std::is_same_v<U, std::int64_t>)
  constexpr Tensor<T, R + 1> operator()(const Tensor<U, R>& index) const {
    return (*this)(Tensor<std::int64_t, R>(index));
  }
  XLA_MODULE(weight, padding_idx)
};
using Embedding = BasicEmbedding<float>;

}  // namespace xla::nn
