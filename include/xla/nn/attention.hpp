// SPDX-License-Identifier: Apache-2.0
#pragma once

// The attention and feed-forward blocks of decoders, with a cache of keys and values. PyTorch's
// layer is multihead_attention.hpp.

#include "xla/nn/activation.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/attention.hpp"
#include "xla/op/derived/rotary.hpp"
#include "xla/op/permute.hpp"

namespace xla::nn {

/// The cache of attention for Batch texts: rotated keys, and values, of the tokens so far.
template <int Batch, int KvHeads, int Length, int HeadSize, class T = float>
struct KeyValues {
  Buffer<T, 4> keys{{Batch, KvHeads, Length, HeadSize}};
  Buffer<T, 4> values{{Batch, KvHeads, Length, HeadSize}};

  XLA_MODULE(keys, values)
};

/// The base of a rotary embedding as a template argument, because some compilers do not accept a
/// plain floating-point number.
struct RotaryBase {
  double theta = 0;
  template <class Number>  // of its own type: a template argument is not converted twice
    requires std::is_arithmetic_v<Number>
  constexpr RotaryBase(Number base) : theta(static_cast<double>(base)) {}
};

/// Self-attention of (batch, sequence, hidden) to the same; the heads share KvHeads keys and values
/// evenly. RotaryTheta is the base of the rotary embedding of queries and keys (0: none), whose
/// frequencies Scaling reduces. Projection is LinearNoBias or Linear, and gives the element type.
template <int Hidden, int Heads, int KvHeads = Heads, class Projection = LinearNoBias,
          RotaryBase RotaryTheta = 0, RotaryScaling Scaling = RotaryScaling{}>
struct Attention {
  static_assert(Heads > 0 && KvHeads > 0 && Hidden % Heads == 0 && Heads % KvHeads == 0,
                "xla::nn::Attention: Heads has to divide Hidden, and KvHeads to divide Heads");
  static constexpr int head_size = Hidden / Heads;
  using value_type = typename Projection::value_type;
  using stream = Tensor<value_type, 3>;

  Projection q_proj{Hidden, Hidden};
  Projection k_proj{Hidden, KvHeads* head_size}, v_proj{Hidden, KvHeads* head_size};
  Projection o_proj{Hidden, Hidden};

  /// A mask is as in scaled_dot_product_attention.
  template <class... Mask>
  constexpr stream operator()(const stream& x, const AttentionOptions& options = {},
                              const Mask&... mask) const {
    const auto q = turn(split<Heads>(q_proj(x))), k = turn(split<KvHeads>(k_proj(x)));
    const auto v = split<KvHeads>(v_proj(x));
    return join(scaled_dot_product_attention(q, k, v, mask..., options));
  }
  /// x is at positions (sequence) of texts, after the tokens in the cache: its keys and values are
  /// added to the cache. It attends to all tokens up to its own, or to those that a mask (batch, 1,
  /// sequence, Length) allows.
  template <int Batch, int Length, class... Mask>
  constexpr stream operator()(const stream& x,
                              const KeyValues<Batch, KvHeads, Length, head_size, value_type>& seen,
                              const Tensor<std::int64_t, 1>& positions, const Mask&... mask) const {
    const auto q = turn(split<Heads>(q_proj(x)), positions);
    seen.keys.index_copy_(2, positions, turn(split<KvHeads>(k_proj(x)), positions));
    seen.values.index_copy_(2, positions, split<KvHeads>(v_proj(x)));
    if constexpr (sizeof...(Mask) > 0)
      return join(scaled_dot_product_attention(q, seen.keys, seen.values, mask...));
    else return join(scaled_dot_product_attention(q, seen.keys, seen.values, positions));
  }
  XLA_MODULE(q_proj, k_proj, v_proj, o_proj)

 private:
  /// (batch, sequence, N heads) to (batch, N, sequence, head size).
  template <int N, class T>
  static constexpr Tensor<T, 4> split(const Tensor<T, 3>& x) {
    return transpose(reshape(x, {x.size(0), x.size(1), N, head_size}), 1, 2);
  }
  template <class T>
  static constexpr Tensor<T, 4> turn(const Tensor<T, 4>& x) {
    if constexpr (RotaryTheta.theta > 0) return rotary_embedding(x, RotaryTheta.theta, Scaling);
    else return x;
  }
  template <class T>
  static constexpr Tensor<T, 4> turn(const Tensor<T, 4>& x,
                                     const Tensor<std::int64_t, 1>& positions) {
    using number = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;
    if constexpr (RotaryTheta.theta > 0)
      return rotary_embedding(x, cast<number>(positions), RotaryTheta.theta, Scaling);
    else return x;
  }
  /// The heads' results (batch, heads, sequence, head size) joined and projected.
  template <class T>
  constexpr Tensor<T, 3> join(const Tensor<T, 4>& y) const {
    return o_proj(reshape(transpose(y, 1, 2), {y.size(0), y.size(2), Hidden}));
  }
};

/// down(silu(gate(x)) up(x)): a feed-forward layer with a gate. Shazeer (2020).
template <int Hidden, int Intermediate, class Projection = LinearNoBias>
struct SwiGLU {
  Projection gate_proj{Hidden, Intermediate}, up_proj{Hidden, Intermediate};
  Projection down_proj{Intermediate, Hidden};

  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return down_proj(silu(gate_proj(x)) * up_proj(x));
  }
  XLA_MODULE(gate_proj, up_proj, down_proj)
};

/// down(gelu(up(x))): the feed-forward layer of GPT; with GELUTanh as Activation that of GPT-2.
template <int Hidden, int Intermediate, class Projection = Linear, class Activation = GELU>
struct FeedForward {
  Projection up_proj{Hidden, Intermediate}, down_proj{Intermediate, Hidden};

  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return down_proj(Activation{}(up_proj(x)));
  }
  XLA_MODULE(up_proj, down_proj)
};

}  // namespace xla::nn
