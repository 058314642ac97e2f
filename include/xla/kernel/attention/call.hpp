// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arguments of attention: sizes, rows of heads, masks. It computes nothing. The kernels of the
// ops fill them.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace xla::kernel {

/// Rows of heads, each contiguous: (batch, heads, rows, width).
template <class T>
struct head_rows {
  T* data;
  std::int64_t batch, head, row;  ///< the distance from one to the next, in elements
  T* at(std::int64_t b, std::int64_t h, std::int64_t r) const {
    return data + b * batch + h * head + r * row;
  }
};

/// The mask of scores: whether a query attends to a key, or a number that is added to the score.
/// The stride is 0 along an axis that the mask broadcasts.
template <class T>
struct score_mask {
  const bool* shown = nullptr;
  const T* added = nullptr;
  std::int64_t batch = 0, head = 0, query = 0, key = 0;
  explicit operator bool() const { return shown || added; }
};

/// Attention of `queries` to `keys`. With grouped-query attention, neighbouring query heads share a
/// key head.
template <class T>
struct attention_call {
  std::int64_t batch, heads, kv_heads, queries, keys, width, out_width;
  bool causal;  ///< query i attends to keys 0 … i
  head_rows<const T> q, k, v;
  score_mask<T> mask;

  T scale() const { return static_cast<T>(1 / std::sqrt(static_cast<double>(width))); }
  /// The factor of scores after the mask, whose numbers are added to scaled scores.
  T later_scale() const { return mask.added ? T{1} : scale(); }
  std::int64_t group() const { return heads / kv_heads; }
  /// The largest number of keys that an earlier query attends to.
  std::int64_t seen_before(std::int64_t query) const {
    return causal ? std::min(query, keys) : keys;
  }
};

/// The arguments of the gradients of attention: what the forward pass read and returned, and where
/// the gradients of queries, keys and values go. A null pointer skips a gradient.
template <class T>
struct attention_gradient_call {
  attention_call<T> of;
  head_rows<const T> out, gradient;
  const T* logs;  ///< the second result
  head_rows<T> q, k, v;
};

}  // namespace xla::kernel
