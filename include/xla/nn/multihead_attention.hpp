// SPDX-License-Identifier: Apache-2.0
#pragma once

// nn::MultiheadAttention, like PyTorch's, with its masks and its packed weights. Decoders have
// attention.hpp.

#include <limits>
#include <type_traits>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/check_index.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/derived/attention.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/derived/split.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/permute.hpp"

namespace xla::nn {

/// The structure of multi-head attention, by PyTorch's names and in its order, with its defaults:
/// nn::MultiheadAttention<512, 8> is nn::MultiheadAttention<nn::MultiheadAttentionConfig{.embed_dim
/// = 512, .num_heads = 8}>.
struct MultiheadAttentionConfig {
  int embed_dim;
  int num_heads;
  bool dropout = false;  ///< of attention weights; the constructor takes p, 0.1 by default
  bool bias = true;
  bool add_bias_kv = false;    ///< a learned key and value after the others
  bool add_zero_attn = false;  ///< a key and a value of zeros after the others
  int kdim = 0;                ///< features of keys; 0: as many as of queries
  int vdim = 0;                ///< the same for values
  bool batch_first = false;    ///< (batch, sequence, features), not (sequence, batch, features)

  constexpr int key_features() const { return kdim > 0 ? kdim : embed_dim; }
  constexpr int value_features() const { return vdim > 0 ? vdim : embed_dim; }
  /// Whether queries, keys and values are projected by one parameter.
  constexpr bool packed() const {
    return key_features() == embed_dim && value_features() == embed_dim;
  }
};

/// A mask as in PyTorch: of bool, true for hidden keys, or of numbers that are added to the scaled
/// scores. A leading axis may be omitted.
template <class T, int R>
struct AttentionMask {
  Tensor<bool, R> hidden;
  Tensor<T, R> added;

  constexpr AttentionMask() = default;
  constexpr AttentionMask(const Tensor<bool, R>& m) : hidden(m) {}
  constexpr AttentionMask(const Tensor<T, R>& m) : added(m) {}
  constexpr AttentionMask(const Tensor<bool, R - 1>& m) : hidden(unsqueeze(m, 0)) {}
  constexpr AttentionMask(const Tensor<T, R - 1>& m) : added(unsqueeze(m, 0)) {}
};

namespace detail {
/// Names the function in the error if values and keys have different lengths.
struct values_of_keys {
  static constexpr auto name = "nn::MultiheadAttention: values for keys";
};
/// Names the function in the error if a mask does not have one matrix per batch and head.
struct mask_of_heads {
  static constexpr auto name = "nn::MultiheadAttention: attn_mask for batch x heads";
};
}  // namespace detail

/// Further arguments of a call of multi-head attention, by PyTorch's names.
template <class T>
struct MultiheadAttentionOptions {
  AttentionMask<T, 2> key_padding_mask =
      {};                              ///< (batch, keys), or (keys) for inputs without a batch
  AttentionMask<T, 3> attn_mask = {};  ///< (queries, keys) or (batch × heads, queries, keys)
  bool is_causal = false;              ///< query i attends to keys 0 … i; needs no mask with it
};

/// Attention of queries to keys and their values with learned projections, like
/// torch.nn.MultiheadAttention, with its initialisation. Queries are (sequence, batch, features)
/// or, if the configuration is batch_first, (batch, sequence, features), or have no batch axis;
/// keys and values likewise. The result is shaped like the queries. A query that attends to nothing
/// gets nothing from the values. Sizes that do not match are a shape_error. Vaswani et al. (2017).
template <class T, MultiheadAttentionConfig C>
struct BasicMultiheadAttention {
  static_assert(C.num_heads > 0 && C.embed_dim > 0 && C.embed_dim % C.num_heads == 0,
                "xla::nn::MultiheadAttention: num_heads has to divide embed_dim");
  using value_type = T;
  static constexpr int head_size = C.embed_dim / C.num_heads;
  using options_type = MultiheadAttentionOptions<T>;
  template <bool Wanted, int R>
  using parameter = detail::state_if<Wanted, Parameter<T, R>>;
  using projection = std::conditional_t<C.bias, BasicLinear<T>, BasicLinearNoBias<T>>;

  parameter<C.packed(), 2> in_proj_weight =  ///< (3 features, features)
      detail::make_state<parameter<C.packed(), 2>>({3 * C.embed_dim, C.embed_dim});
  parameter<!C.packed(), 2> q_proj_weight =  ///< (features, features)
      detail::make_state<parameter<!C.packed(), 2>>({C.embed_dim, C.embed_dim});
  parameter<!C.packed(), 2> k_proj_weight =  ///< (features, kdim)
      detail::make_state<parameter<!C.packed(), 2>>({C.embed_dim, C.key_features()});
  parameter<!C.packed(), 2> v_proj_weight =  ///< (features, vdim)
      detail::make_state<parameter<!C.packed(), 2>>({C.embed_dim, C.value_features()});
  parameter<C.bias, 1> in_proj_bias =  ///< (3 features)
      detail::make_state<parameter<C.bias, 1>>({3 * C.embed_dim});
  parameter<C.add_bias_kv, 3> bias_k =  ///< (1, 1, features)
      detail::make_state<parameter<C.add_bias_kv, 3>>({1, 1, C.embed_dim});
  parameter<C.add_bias_kv, 3> bias_v =  ///< (1, 1, features)
      detail::make_state<parameter<C.add_bias_kv, 3>>({1, 1, C.embed_dim});
  projection out_proj{C.embed_dim, C.embed_dim};
  std::conditional_t<C.dropout, Dropout, Identity> dropout;

  constexpr BasicMultiheadAttention() {
    if constexpr (C.dropout) dropout.p = 0.1;
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// The default is 0.1, where PyTorch's is 0: there the probability also decides whether there is
  /// dropout. One outside [0, 1] is an xla::error.
  constexpr explicit BasicMultiheadAttention(double dropout_p)
    requires(C.dropout)
      : BasicMultiheadAttention() {
    dropout = Dropout(dropout_p);
  }
  /// Projections are uniform by Xavier's rule, that of the result is like nn::Linear's; biases are
  /// 0.
  void reset_parameters() {
    if constexpr (C.packed()) init::xavier_uniform_(in_proj_weight);
    else {
      init::xavier_uniform_(q_proj_weight);
      init::xavier_uniform_(k_proj_weight);
      init::xavier_uniform_(v_proj_weight);
    }
    if constexpr (C.bias) {
      init::zeros_(in_proj_bias);
      init::zeros_(out_proj.bias);
    }
    if constexpr (C.add_bias_kv) {
      init::xavier_normal_(bias_k);
      init::xavier_normal_(bias_v);
    }
  }

  constexpr Tensor<T, 3> operator()(const Tensor<T, 3>& query, const Tensor<T, 3>& key,
                                    const Tensor<T, 3>& value, const options_type& options = {},
                                    caller loc = here()) const {
    return attend(project(query, key, value, loc), options, loc);
  }
  /// Self-attention: x is query, key and value, projected by one product.
  constexpr Tensor<T, 3> operator()(const Tensor<T, 3>& x, const options_type& options = {},
                                    caller loc = here()) const {
    return attend(project(x, loc), options, loc);
  }
  constexpr Tensor<T, 2> operator()(const Tensor<T, 2>& x, const options_type& options = {},
                                    caller loc = here()) const {
    return squeeze<batch_axis>((*this)(batch_of_one(x), options, loc));
  }
  constexpr Tensor<T, 2> operator()(const Tensor<T, 2>& query, const Tensor<T, 2>& key,
                                    const Tensor<T, 2>& value, const options_type& options = {},
                                    caller loc = here()) const {
    return squeeze<batch_axis>(
        (*this)(batch_of_one(query), batch_of_one(key), batch_of_one(value), options, loc));
  }

  /// The result, and the weights of the values: their mean over the heads (batch, queries, keys),
  /// or if not Average (batch, heads, queries, keys). It corresponds to torch's need_weights=True.
  template <bool Average = true>
  constexpr auto with_weights(const Tensor<T, 3>& query, const Tensor<T, 3>& key,
                              const Tensor<T, 3>& value, const options_type& options = {},
                              caller loc = here()) const {
    const projected x = project(query, key, value, loc);
    const auto w = masked(x, options, loc, [&](const AttentionOptions& how, const auto&... mask) {
      return attention_weights(x.q, x.k, mask..., how, loc);
    });
    const auto y = join(matmul(w, x.v, loc));
    if constexpr (Average) return std::pair<Tensor<T, 3>, Tensor<T, 3>>(y, mean(w, {1}));
    else return std::pair<Tensor<T, 3>, Tensor<T, 4>>(y, w);
  }
  XLA_MODULE(in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k,
             bias_v, out_proj, dropout)

 private:
  static constexpr int sequence_axis = C.batch_first ? 1 : 0, batch_axis = 1 - sequence_axis;
  static constexpr int more_keys = int{C.add_bias_kv} + int{C.add_zero_attn};

  /// Queries, keys and values by head: (batch, heads, sequence, head size).
  struct projected {
    Tensor<T, 4> q, k, v;
  };

  constexpr Tensor<T, 3> attend(const projected& x, const options_type& options, caller loc) const {
    return join(masked(x, options, loc, [&](const AttentionOptions& how, const auto&... mask) {
      return scaled_dot_product_attention(x.q, x.k, x.v, mask..., how, loc);
    }));
  }
  constexpr projected project(const Tensor<T, 3>& query, const Tensor<T, 3>& key,
                              const Tensor<T, 3>& value, caller loc) const {
    check_size<detail::values_of_keys>(value, sequence_axis, key.size(sequence_axis), loc);
    check_size<detail::values_of_keys>(value, batch_axis, key.size(batch_axis), loc);
    return with_more_keys(part<0>(query, loc), part<1>(key, loc), part<2>(value, loc), loc);
  }
  constexpr projected project(const Tensor<T, 3>& x, caller loc) const {
    if constexpr (C.packed()) {
      const auto [q, k, v] = split<3>(packed_projection(x, loc), 2);
      return with_more_keys(q, k, v, loc);
    } else {
      return project(x, x, x, loc);
    }
  }
  constexpr Tensor<T, 3> packed_projection(const Tensor<T, 3>& x, caller loc) const {
    if constexpr (C.bias) return linear(x, in_proj_weight, in_proj_bias, loc);
    else return linear(x, in_proj_weight, loc);
  }
  constexpr projected with_more_keys(const Tensor<T, 3>& q, Tensor<T, 3> k, Tensor<T, 3> v,
                                     caller loc) const {
    if constexpr (C.add_bias_kv) {
      k = cat({k, once_each(bias_k, k)}, sequence_axis, loc);
      v = cat({v, once_each(bias_v, v)}, sequence_axis, loc);
    }
    if constexpr (C.add_zero_attn) {
      k = one_more(k);
      v = one_more(v);
    }
    return {heads_of(q), heads_of(k), heads_of(v)};
  }
  /// The projection of queries, keys or values.
  template <int I>
  constexpr Tensor<T, 3> part(const Tensor<T, 3>& x, caller loc) const {
    const Tensor<T, 2> weight = weight_of<I>();
    if constexpr (C.bias)
      return linear(x, weight, narrow(in_proj_bias, 0, I * C.embed_dim, C.embed_dim), loc);
    else return linear(x, weight, loc);
  }
  template <int I>
  constexpr Tensor<T, 2> weight_of() const {
    if constexpr (C.packed()) return narrow(in_proj_weight, 0, I * C.embed_dim, C.embed_dim);
    else if constexpr (I == 0) return q_proj_weight;
    else if constexpr (I == 1) return k_proj_weight;
    else return v_proj_weight;
  }
  /// bias (1, 1, features), repeated for each batch of x.
  static constexpr Tensor<T, 3> once_each(const Tensor<T, 3>& bias, const Tensor<T, 3>& x) {
    if constexpr (C.batch_first) return expand(bias, {x.size(0), 1, C.embed_dim});
    else return expand(bias, {1, x.size(1), C.embed_dim});
  }
  static constexpr Tensor<T, 3> one_more(const Tensor<T, 3>& x) {
    if constexpr (C.batch_first) return pad(x, {{0, 0}, {0, 1}, {0, 0}});
    else return pad(x, {{0, 1}, {0, 0}, {0, 0}});
  }
  static constexpr Tensor<T, 4> heads_of(const Tensor<T, 3>& x) {
    const auto heads = reshape(x, {x.size(0), x.size(1), C.num_heads, head_size});
    if constexpr (C.batch_first) return transpose(heads, 1, 2);
    else return permute(heads, {1, 2, 0, 3});
  }
  constexpr Tensor<T, 3> join(const Tensor<T, 4>& y) const {
    if constexpr (C.batch_first)
      return out_proj(reshape(transpose(y, 1, 2), {y.size(0), y.size(2), C.embed_dim}));
    else return out_proj(reshape(permute(y, {2, 0, 1, 3}), {y.size(2), y.size(0), C.embed_dim}));
  }
  static constexpr Tensor<T, 3> batch_of_one(const Tensor<T, 2>& x) {
    return unsqueeze(x, batch_axis);
  }

  /// Calls f(options) if there is no mask, else f(options, mask) with the two masks combined.
  template <class F>
  constexpr Tensor<T, 4> masked(const projected& x, const options_type& given, caller loc,
                                const F& f) const {
    AttentionOptions how{.causal = given.is_causal && more_keys == 0};
    if constexpr (C.dropout)
      if (dropout.training) how.dropout_p = dropout.p;
    const dependent<T, Tensor<bool, 4>> hidden = all_hidden(x, given, loc);
    const Tensor<T, 4> added = all_added(x, given, loc);
    if (added.defined() && hidden.defined())
      return f(how, where(hidden, -std::numeric_limits<T>::infinity(), added));
    if (added.defined()) return f(how, added);
    if (hidden.defined()) return f(how, logical_not(hidden));
    return f(how);
  }
  constexpr Tensor<bool, 4> all_hidden(const projected& x, const options_type& given,
                                       caller loc) const {
    Tensor<bool, 4> all;
    if (given.attn_mask.hidden.defined()) all = of_pairs(given.attn_mask.hidden, x, loc);
    if (more_keys > 0 && given.is_causal) {
      const auto causal = unsqueeze(unsqueeze(triangle(x), 0), 0);
      if (all.defined()) all = logical_or(all, causal);
      else all = causal;
    }
    if (given.key_padding_mask.hidden.defined()) {
      const auto keys = of_keys(given.key_padding_mask.hidden);
      if (all.defined()) all = logical_or(all, keys);
      else all = keys;
    }
    return all;
  }
  constexpr Tensor<T, 4> all_added(const projected& x, const options_type& given,
                                   caller loc) const {
    Tensor<T, 4> all;
    if (given.attn_mask.added.defined()) all = of_pairs(given.attn_mask.added, x, loc);
    if (given.key_padding_mask.added.defined()) {
      const auto keys = of_keys(given.key_padding_mask.added);
      if (all.defined()) all = all + keys;
      else all = keys;
    }
    return all;
  }
  /// A mask (1 or batch × heads, queries, keys) per head, which allows the added keys.
  template <class B>
  static constexpr Tensor<B, 4> of_pairs(const Tensor<B, 3>& mask, const projected& x, caller loc) {
    const Size each = mask.size(0), queries = mask.size(1), keys = mask.size(2);
    if (each.known() && each == 1) return seen_more(reshape(mask, {1, 1, queries, keys}));
    check_size<detail::mask_of_heads>(mask, 0, x.q.size(0) * C.num_heads, loc);
    return seen_more(reshape(mask, {x.q.size(0), C.num_heads, queries, keys}));
  }
  template <class B>
  static constexpr Tensor<B, 4> of_keys(const Tensor<B, 2>& mask) {
    return seen_more(reshape(mask, {mask.size(0), 1, 1, mask.size(1)}));
  }
  template <class B>
  static constexpr Tensor<B, 4> seen_more(const Tensor<B, 4>& mask) {
    if constexpr (more_keys == 0) return mask;
    else return pad(mask, {{0, 0}, {0, 0}, {0, 0}, {0, more_keys}});
  }
  /// True where a key is after a query (queries, keys), except for added keys.
  static constexpr Tensor<bool, 2> triangle(const projected& x) {
    const Size keys = x.k.size(2);
    const auto at = arange<T>(keys);
    return logical_and(at > unsqueeze(arange<T>(x.q.size(2)), 1), at < keys - more_keys);
  }
};
template <auto... C>
using MultiheadAttention = BasicMultiheadAttention<float, MultiheadAttentionConfig{C...}>;

}  // namespace xla::nn
