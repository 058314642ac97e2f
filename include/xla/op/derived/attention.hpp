// SPDX-License-Identifier: Apache-2.0
#pragma once

// scaled_dot_product_attention(): the op attention if its weights are neither read nor dropped,
// else products and softmax.

#include <concepts>

#include "xla/op/derived/attention_gradient.hpp"
#include "xla/op/derived/attention_weights.hpp"
#include "xla/op/derived/dropout.hpp"

namespace xla {

namespace detail {

/// A hyper-parameter that may be left out.
class optional_scalar {
 public:
  constexpr optional_scalar(none_t) {}
  constexpr optional_scalar(const Scalar& s) : scalar_(s), given_(true) {}
  constexpr optional_scalar(std::convertible_to<double> auto v)
      : scalar_(v), given_(true), number_(true) {}
  constexpr bool given() const { return given_; }
  /// True if it is exactly this number; false for a hyper-parameter, in every mode.
  constexpr bool is(double v) const { return number_ && scalar_.value() == v; }
  constexpr const Scalar& scalar() const { return scalar_; }

 private:
  Scalar scalar_;
  bool given_ = false, number_ = false;
};

}  // namespace detail

/// Options of scaled_dot_product_attention, by PyTorch's names.
struct AttentionOptions {
  bool causal = false;  ///< query i attends only to keys 0 … i
  /// Drops weights with this probability, in evaluation too: a layer passes it only in training.
  detail::optional_scalar dropout_p = none;
  detail::optional_scalar scale = none;  ///< of scores; none: 1 / √width
  /// Neighbouring query heads share a key head. If false, which is PyTorch's default, there must be
  /// as many key heads as query heads.
  bool enable_gqa = true;
};

namespace detail {

/// Whether heads share key heads evenly and have elements; else it is refused.
template <class T>
constexpr bool heads_fit(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                         const AttentionOptions& options, caller loc) {
  const Size heads = q.size(1), kv_heads = k.size(1);
  const size_scope scope{q.table() ? q.table() : k.table(), {"scaled_dot_product_attention", loc}};
  scope.nonzero(q.size(3).extent(), "scaled_dot_product_attention: heads have no elements");
  scope.nonzero(kv_heads.extent(), "scaled_dot_product_attention: there are no key heads");
  extent all = heads.extent();
  if (!options.enable_gqa) {
    if (scope.equal(all, kv_heads.extent())) return true;
    scope.fail(text("") << all << " query heads and " << kv_heads.extent()
                        << " key heads differ: enable_gqa lets neighbours share a key head");
    return false;
  }
  const extent shared = (heads / kv_heads * kv_heads).extent();
  if (!heads.known() || !kv_heads.known()) return scope.equal(all, shared);
  if (all == shared) return true;
  scope.fail(text("") << all << " query heads cannot share " << kv_heads.extent()
                      << " key heads evenly");
  return false;
}

/// The factor of the scores.
template <class T>
constexpr Tensor<T, 0> scale_of(const AttentionOptions& options, Size width, size_table* table) {
  if (!options.scale.given()) return score_scale<T>(width, table);
  return with_table(options.scale.scalar().template as<T>(), table);
}
/// Queries scaled such that kernels, which always multiply scores by 1 / √width, give scores of the
/// requested scale.
template <class T>
constexpr Tensor<T, 4> scaled_queries(const Tensor<T, 4>& q, const AttentionOptions& options) {
  if (!options.scale.given()) return q;
  const auto root = with_table(sqrt(number_of<T>(q.size(3)).tensor()), q.table());
  return q * (scale_of<T>(options, q.size(3), q.table()) * root);
}

/// The weights (batch, kv_heads, group, queries, keys), by a function of scaled scores; neither is
/// rounded to bfloat16. Queries of a group are rows of one product, so that keys and values are
/// read in place. Undefined if the heads are refused.
template <class T, class Weigh>
constexpr Tensor<computed<T>, 5> weights_of(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                            caller loc, Weigh weigh,
                                            const AttentionOptions& options = {}) {
  if (!heads_fit(q, k, options, loc)) return {};
  const Size batch = q.size(0), queries = q.size(2), width = q.size(3);
  const Size kv_heads = k.size(1), keys = k.size(2), group = q.size(1) / kv_heads;
  // In the graph before the scores, so that the layers of a model multiply in the same order and
  // share a kernel.
  const auto scale = scale_of<computed<T>>(options, width, q.table());
  const auto rows = reshape(q, {batch, kv_heads, group * queries, width}, loc);
  const auto scores =
      reshape(wide_product<4>(rows, k, false, true, loc), {batch, kv_heads, group, queries, keys});
  return weigh(scores * scale);
}

/// Attention by weights that a function computes from scores.
template <class T, class Weigh>
constexpr Tensor<T, 4> attend(const Tensor<T, 4>& q, const Tensor<T, 4>& k, const Tensor<T, 4>& v,
                              caller loc, Weigh weigh, const AttentionOptions& options = {}) {
  const auto w = weights_of(q, k, loc, weigh, options);
  if (!w.defined()) return q;
  const Size batch = q.size(0), kv_heads = k.size(1), queries = q.size(2), keys = k.size(2);
  const auto rows = reshape(narrowed<T>(w), {batch, kv_heads, w.size(2) * queries, keys});
  return reshape(matmul(rows, v, loc), {batch, q.size(1), queries, v.size(3)});
}

template <int M>
constexpr void check_mask_rank() {
  static_assert(M >= 2 && M <= 4,
                "xla::scaled_dot_product_attention: a mask is (queries, keys) or (batch, heads, "
                "queries, keys); sizes may be 1");
}
template <class B, class T>
constexpr void check_mask_type() {
  static_assert(std::is_same_v<B, bool> || std::is_same_v<B, T>,
                "xla::scaled_dot_product_attention: a mask is of bool, or of the element type of "
                "queries and keys; convert it: xla::cast<bool>(mask)");
}
/// A mask with all four axes: missing ones get size 1.
template <class B, int M>
constexpr Tensor<B, 4> whole_mask(const Tensor<B, M>& mask) {
  check_mask_rank<M>();
  if constexpr (M == 4) return mask;
  else {
    shape s;
    for (int i = 0; i < 4; ++i) s.push(i < 4 - M ? 1 : mask.dims()[i - (4 - M)]);
    return with_shape<op::reshape, 4>(mask, s);
  }
}
/// A mask as `weights_of` needs it: (queries, keys) unchanged, the heads of others split into
/// groups.
template <class B, int M>
constexpr auto group_mask(const Tensor<B, M>& mask, Size kv_heads, Size group) {
  if constexpr (M == 2) return mask;
  else {
    const auto whole = whole_mask(mask);
    const bool every_head = whole.dims()[1] == 1;
    return reshape(whole, {whole.size(0), every_head ? Size(1) : kv_heads,
                           every_head ? Size(1) : group, whole.size(2), whole.size(3)});
  }
}

/// Whether weights are dropped. The number 0 is known in every mode; a hyper-parameter may change,
/// so it counts as dropping.
constexpr bool drops(const AttentionOptions& options) {
  return options.dropout_p.given() && !options.dropout_p.is(0);
}

/// Turns scores into weights without a mask: scaled, causal or not, softmax.
template <class T>
struct weigh_all {
  const AttentionOptions& options;

  constexpr Tensor<T, 5> operator()(const Tensor<T, 5>& scores) const {
    if (!options.causal) return drop(softmax(scores));
    return drop(causal_softmax(scores, causal_mask<T>(scores.size(3), scores.size(4))));
  }
  constexpr Tensor<T, 5> drop(const Tensor<T, 5>& w) const {
    return drops(options) ? dropout(w, options.dropout_p.scalar()) : w;
  }
};
/// The same with a mask, of bool or of numbers that are added.
template <class T, class B, int M>
struct weigh_masked {
  const Tensor<B, M>& mask;
  const AttentionOptions& options;
  caller loc;

  constexpr Tensor<T, 5> operator()(const Tensor<T, 5>& scores) const {
    check_mask_type<B, T>();
    return weigh_all<T>{options}.drop(
        weigh(scores, group_mask(mask, scores.size(1), scores.size(2))));
  }
  constexpr Tensor<T, 5> weigh(const Tensor<T, 5>& scores, const auto& given) const {
    if constexpr (!std::is_same_v<B, bool>) {
      const Tensor<T, 5> moved = scores + given;
      if (!options.causal) return shown_softmax(moved);
      return masked_softmax(moved, causal_mask<T>(scores.size(3), scores.size(4)), loc);
    } else {
      if (!options.causal) return masked_softmax(scores, given, loc);
      const auto causal = causal_mask<T>(scores.size(3), scores.size(4));
      return masked_softmax(scores, logical_and(given, causal, loc), loc);
    }
  }
};

/// The weights as (batch, heads, queries, keys), without groups.
template <class T, class Weigh>
constexpr Tensor<T, 4> all_weights(const Tensor<T, 4>& q, const Tensor<T, 4>& k, caller loc,
                                   Weigh weigh, const AttentionOptions& options) {
  const auto w = weights_of(q, k, loc, weigh, options);
  if (!w.defined()) return q;
  return reshape(narrowed<T>(w), {q.size(0), q.size(1), q.size(2), k.size(2)});
}

}  // namespace detail

/// softmax(q kᵀ / √width) v: q is (batch, heads, queries, width), k and v are (batch, kv_heads,
/// keys, width), where neighbouring heads share a key head (grouped-query attention). The result is
/// shaped like q, with v's width. Vaswani et al. (2017); Ainslie et al. (2023). Sizes that do not
/// match are a shape_error.
template <class T>
constexpr Tensor<T, 4> scaled_dot_product_attention(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                                    const Tensor<T, 4>& v,
                                                    const AttentionOptions& options = {},
                                                    caller loc = here()) {
  if constexpr (std::is_floating_point_v<T>)
    if (!detail::drops(options)) {  // each weight has a random number of its own
      if (!detail::heads_fit(q, k, options, loc)) return q;
      return detail::attend_at_once(detail::scaled_queries(q, options), k, v, options.causal, loc);
    }
  return detail::attend(q, k, v, loc, detail::weigh_all<detail::computed<T>>{options}, options);
}

/// The same with a mask (queries, keys), (heads, queries, keys) or (batch, heads, queries, keys),
/// also with sizes 1. A query attends only to keys for which a mask of bool is true; a mask of
/// numbers is added to the scaled scores, and -infinity hides a key. A query that attends to
/// nothing gets 0. A mask that does not broadcast to these sizes is a shape_error.
template <class T, class B, int M>
constexpr Tensor<T, 4> scaled_dot_product_attention(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                                    const Tensor<T, 4>& v, const Tensor<B, M>& mask,
                                                    const AttentionOptions& options = {},
                                                    caller loc = here()) {
  detail::check_mask_rank<M>();
  detail::check_mask_type<B, T>();
  if constexpr (std::is_floating_point_v<T> && M >= 2 && M <= 4 &&
                (std::is_same_v<B, bool> || std::is_same_v<B, T>))
    if (!detail::drops(options)) {
      if (!detail::heads_fit(q, k, options, loc)) return q;
      return detail::attend_at_once(detail::scaled_queries(q, options), k, v, options.causal, loc,
                                    detail::whole_mask(mask));
    }
  using weigh = detail::weigh_masked<detail::computed<T>, detail::computed<B>, M>;
  return detail::attend(q, k, v, loc, weigh{detail::widened(mask), options, loc}, options);
}

/// The same where query i, which is at positions[i] of the text, attends to keys 0 … positions[i]:
/// those of the tokens so far in a cache with room for more. Another number of positions than
/// queries is a shape_error.
template <class T>
constexpr Tensor<T, 4> scaled_dot_product_attention(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                                    const Tensor<T, 4>& v,
                                                    const Tensor<std::int64_t, 1>& positions,
                                                    caller loc = here()) {
  using C = detail::computed<T>;
  return detail::attend(q, k, v, loc, [&](const Tensor<C, 5>& scores) -> Tensor<C, 5> {
    return detail::causal_softmax(scores, detail::causal_mask(cast<C>(positions), scores.size(4)));
  });
}

/// The weights (batch, heads, queries, keys) by which scaled_dot_product_attention sums values.
template <class T>
constexpr Tensor<T, 4> attention_weights(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                         const AttentionOptions& options = {},
                                         caller loc = here()) {
  return detail::all_weights(q, k, loc, detail::weigh_all<detail::computed<T>>{options}, options);
}
template <class T, class B, int M>
constexpr Tensor<T, 4> attention_weights(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                         const Tensor<B, M>& mask,
                                         const AttentionOptions& options = {},
                                         caller loc = here()) {
  detail::check_mask_type<B, T>();
  using weigh = detail::weigh_masked<detail::computed<T>, detail::computed<B>, M>;
  return detail::all_weights(q, k, loc, weigh{detail::widened(mask), options, loc}, options);
}

}  // namespace xla
