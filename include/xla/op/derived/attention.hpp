// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "xla/op/derived/dropout.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/root.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// What scaled_dot_product_attention does besides weighing.
struct AttentionOptions {
  bool causal = false;   ///< query i sees the keys 0 … i only
  Scalar dropout_p = 0;  ///< a weight is dropped with this probability, while training
  bool training = false;
};

namespace detail {

/// softmax over the last axis, along which -infinity is not seen; a row without anything else is 0.
template <class T, int R>
constexpr Tensor<T, R> shown_softmax(const Tensor<T, R>& shown) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  const auto top = max(shown, {-1}, keepdim).detach();
  const auto e = exp(shown - where(top == hidden, 0, top));
  const auto total = sum(e, {-1}, keepdim);
  return e / where(total == 0, 1, total);
}
/// The same of what the mask shows.
template <class T, int R, int M>
constexpr Tensor<T, R> masked_softmax(const Tensor<T, R>& x, const Tensor<bool, M>& mask,
                                      caller who) {
  return shown_softmax(where(mask, x, -std::numeric_limits<T>::infinity(), who));
}

/// Which keys (second) each query (first) sees: those not behind its position.
template <class T>
constexpr Tensor<bool, 2> causal_mask(const Tensor<T, 1>& positions, Size keys) {
  return unsqueeze(positions, 1) >= arange<T>(keys);
}
template <class T>
constexpr Tensor<bool, 2> causal_mask(Size queries, Size keys) {
  return causal_mask(arange<T>(queries), keys);
}
/// softmax of scores (…, queries, keys) over what the mask shows: at least one key for each query.
template <class T>
constexpr Tensor<T, 5> causal_softmax(const Tensor<T, 5>& scores, const Tensor<bool, 2>& mask) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  return softmax(where(mask, scores, hidden));
}

/// Weights (batch, kv_heads, group, queries, keys) that a function makes of scaled scores. The
/// queries of a group are rows of one product: keys and values are read where they are. Undefined
/// where the heads are refused.
template <class T, class Weigh>
constexpr Tensor<T, 5> weights_of(const Tensor<T, 4>& q, const Tensor<T, 4>& k, caller who,
                                  Weigh weigh) {
  const Size batch = q.size(0), heads = q.size(1), queries = q.size(2), width = q.size(3);
  const Size kv_heads = k.size(1), keys = k.size(2);
  const size_scope scope{q.table() ? q.table() : k.table(), {"scaled_dot_product_attention", who}};
  scope.nonzero(width.extent(), "scaled_dot_product_attention: heads have no elements");
  scope.nonzero(kv_heads.extent(), "scaled_dot_product_attention: there are no key heads");
  const Size group = heads / kv_heads;
  if (heads.known() && kv_heads.known() && heads.extent() != (group * kv_heads).extent()) {
    scope.fail(text("") << heads.extent() << " query heads cannot share " << kv_heads.extent()
                        << " key heads evenly");
    return {};
  }
  // In the graph before the scores, so that the layers of a model multiply in the same order and
  // share a kernel.
  const Tensor<T, 0> scale = beside(Tensor<T, 0>(rsqrt(number_of<T>(width).tensor())), q.table());
  const auto rows = reshape(q, {batch, kv_heads, group * queries, width}, who);
  const auto scores =
      reshape(product<4>(rows, k, false, true, who), {batch, kv_heads, group, queries, keys});
  return weigh(scores * scale);
}

/// Attention with such weights.
template <class T, class Weigh>
constexpr Tensor<T, 4> attend(const Tensor<T, 4>& q, const Tensor<T, 4>& k, const Tensor<T, 4>& v,
                              caller who, Weigh weigh) {
  const Tensor<T, 5> w = weights_of(q, k, who, weigh);
  if (!w.defined()) return q;
  const Size batch = q.size(0), kv_heads = k.size(1), queries = q.size(2), keys = k.size(2);
  const auto rows = reshape(w, {batch, kv_heads, w.size(2) * queries, keys});
  return reshape(matmul(rows, v, who), {batch, q.size(1), queries, v.size(3)});
}

/// A mask of the last two axes as it is; one of four with its heads split into groups.
template <class B, int M>
constexpr auto group_mask(const Tensor<B, M>& mask, Size kv_heads, Size group) {
  static_assert(M == 2 || M == 4,
                "xla::scaled_dot_product_attention: a mask is (queries, keys) or (batch, heads, "
                "queries, keys); sizes may be 1");
  if constexpr (M == 2) return mask;
  else {
    const bool every_head = mask.dims()[1] == 1;
    return reshape(mask, {mask.size(0), every_head ? Size(1) : kv_heads,
                          every_head ? Size(1) : group, mask.size(2), mask.size(3)});
  }
}

/// How attention weighs, by its options.
template <class T>
struct weigh_all {
  const AttentionOptions& options;

  constexpr Tensor<T, 5> operator()(const Tensor<T, 5>& scores) const {
    if (!options.causal) return drop(softmax(scores));
    return drop(causal_softmax(scores, causal_mask<T>(scores.size(3), scores.size(4))));
  }
  constexpr Tensor<T, 5> drop(const Tensor<T, 5>& w) const {
    return dropout(w, options.dropout_p, options.training);
  }
};
/// The same of what a mask shows, or after one is added.
template <class T, class B, int M>
struct weigh_masked {
  static_assert(std::is_same_v<B, bool> || std::is_same_v<B, T>,
                "xla::scaled_dot_product_attention: a mask is of bool, or of the element type of "
                "queries and keys; convert it: xla::cast<bool>(mask)");
  const Tensor<B, M>& mask;
  const AttentionOptions& options;
  caller who;

  constexpr Tensor<T, 5> operator()(const Tensor<T, 5>& scores) const {
    return weigh_all<T>{options}.drop(
        weigh(scores, group_mask(mask, scores.size(1), scores.size(2))));
  }
  constexpr Tensor<T, 5> weigh(const Tensor<T, 5>& scores, const auto& given) const {
    if constexpr (!std::is_same_v<B, bool>) {
      const Tensor<T, 5> moved = scores + given;
      if (!options.causal) return shown_softmax(moved);
      return masked_softmax(moved, causal_mask<T>(scores.size(3), scores.size(4)), who);
    } else {
      if (!options.causal) return masked_softmax(scores, given, who);
      const auto causal = causal_mask<T>(scores.size(3), scores.size(4));
      return masked_softmax(scores, logical_and(given, causal, who), who);
    }
  }
};

/// Weights of (batch, heads, queries, keys), of which detail::weights_of has groups.
template <class T, class Weigh>
constexpr Tensor<T, 4> all_weights(const Tensor<T, 4>& q, const Tensor<T, 4>& k, caller who,
                                   Weigh weigh) {
  const Tensor<T, 5> w = weights_of(q, k, who, weigh);
  if (!w.defined()) return q;
  return reshape(w, {q.size(0), q.size(1), q.size(2), k.size(2)});
}

}  // namespace detail

/// softmax(q kᵀ / √width) v: q (batch, heads, queries, width), k and v (batch, kv_heads, keys,
/// width), where neighbouring heads share a key head (grouped-query attention); the result is as q
/// with v's width. Vaswani et al. (2017); Ainslie et al. (2023). Sizes that do not fit each other
/// are a shape_error.
template <class T>
constexpr Tensor<T, 4> scaled_dot_product_attention(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                                    const Tensor<T, 4>& v,
                                                    const AttentionOptions& options = {},
                                                    caller who = here()) {
  return detail::attend(q, k, v, who, detail::weigh_all<T>{options});
}

/// The same with a mask (queries, keys) or (batch, heads, queries, keys), also with sizes 1. Of
/// bool: a query sees only keys for which it holds; of numbers: they are added to the scaled
/// scores, -infinity hides. A query that sees nothing gets 0. A mask that does not broadcast to
/// them is a shape_error.
template <class T, class B, int M>
constexpr Tensor<T, 4> scaled_dot_product_attention(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                                    const Tensor<T, 4>& v, const Tensor<B, M>& mask,
                                                    const AttentionOptions& options = {},
                                                    caller who = here()) {
  return detail::attend(q, k, v, who, detail::weigh_masked<T, B, M>{mask, options, who});
}

/// The same where query i, which stands at positions[i] of the text, sees the keys 0 …
/// positions[i]: those of the tokens so far in a cache that has places for more. Another number of
/// positions than queries is a shape_error.
template <class T>
constexpr Tensor<T, 4> scaled_dot_product_attention(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                                    const Tensor<T, 4>& v,
                                                    const Tensor<std::int64_t, 1>& positions,
                                                    caller who = here()) {
  return detail::attend(q, k, v, who, [&](const Tensor<T, 5>& scores) -> Tensor<T, 5> {
    return detail::causal_softmax(scores, detail::causal_mask(cast<T>(positions), scores.size(4)));
  });
}

/// The weights (batch, heads, queries, keys) with which scaled_dot_product_attention sums values.
template <class T>
constexpr Tensor<T, 4> attention_weights(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                         const AttentionOptions& options = {},
                                         caller who = here()) {
  return detail::all_weights(q, k, who, detail::weigh_all<T>{options});
}
template <class T, class B, int M>
constexpr Tensor<T, 4> attention_weights(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                         const Tensor<B, M>& mask,
                                         const AttentionOptions& options = {},
                                         caller who = here()) {
  return detail::all_weights(q, k, who, detail::weigh_masked<T, B, M>{mask, options, who});
}

}  // namespace xla
