// SPDX-License-Identifier: Apache-2.0
#pragma once

// PyTorch's transformer encoder and its layers. Decoders of language models are decoder.hpp;
// PyTorch's decoder is transformer_decoder.hpp.

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "xla/nn/containers.hpp"
#include "xla/nn/multihead_attention.hpp"
#include "xla/nn/normalization.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/relu.hpp"

namespace xla::nn {

enum class TransformerActivation { relu, gelu };

/// The structure of a layer of a transformer, by PyTorch's names and in its order, with its
/// defaults: nn::TransformerEncoderLayer<512, 8> is
/// nn::TransformerEncoderLayer<nn::TransformerEncoderLayerConfig{.d_model = 512, .nhead = 8}>.
struct TransformerEncoderLayerConfig {
  int d_model;
  int nhead;
  int dim_feedforward = 2048;
  bool dropout = true;  ///< the constructor takes its probability
  TransformerActivation activation = TransformerActivation::relu;
  bool batch_first = false;  ///< (batch, sequence, features), not (sequence, batch, features)
  bool norm_first = false;  ///< normalizes before attention and feed-forward layer instead of after
  bool bias = true;          ///< of linear layers and of normalization

  constexpr MultiheadAttentionConfig attention() const {
    return {.embed_dim = d_model,
            .num_heads = nhead,
            .dropout = dropout,
            .bias = bias,
            .batch_first = batch_first};
  }
};

namespace detail {

/// What linear1, dropout and linear2 of a layer of a transformer make of x.
template <TransformerActivation A, class T, int R>
constexpr Tensor<T, R> transformer_feed_forward(const auto& layer, const Tensor<T, R>& x,
                                                caller loc) {
  const Tensor<T, R> h = layer.linear1(x, loc);
  if constexpr (A == TransformerActivation::gelu) return layer.linear2(layer.dropout(gelu(h)), loc);
  else return layer.linear2(layer.dropout(relu(h)), loc);
}

}  // namespace detail

/// Further arguments of a call of a layer, by PyTorch's names; masks as in MultiheadAttention.
template <class T>
struct TransformerEncoderLayerOptions {
  AttentionMask<T, 3> src_mask = {};  ///< (sequence, sequence) or one for each batch × head
  AttentionMask<T, 2> src_key_padding_mask = {};  ///< (batch, sequence)
  bool is_causal = false;                         ///< a position attends to itself and earlier ones
};
/// The same for an encoder.
template <class T>
struct TransformerEncoderOptions {
  AttentionMask<T, 3> mask = {};  ///< (sequence, sequence) or one for each batch × head
  AttentionMask<T, 2> src_key_padding_mask = {};  ///< (batch, sequence)
  bool is_causal = false;                         ///< a position attends to itself and earlier ones
};

/// Self-attention and a feed-forward layer, each added to its input, like
/// torch.nn.TransformerEncoderLayer: (sequence, batch, features) to the same or, if the
/// configuration is batch_first, (batch, sequence, features), or without a batch axis. Dropout is
/// 0.1 by default. Vaswani et al. (2017).
template <class T, TransformerEncoderLayerConfig C>
struct BasicTransformerEncoderLayer {
  using value_type = T;
  using options_type = TransformerEncoderLayerOptions<T>;
  using linear_layer = std::conditional_t<C.bias, BasicLinear<T>, BasicLinearNoBias<T>>;
  using norm_layer = BasicLayerNorm<T, C.bias>;
  using dropout_layer = std::conditional_t<C.dropout, Dropout, Identity>;

  BasicMultiheadAttention<T, C.attention()> self_attn;
  linear_layer linear1{C.d_model, C.dim_feedforward};
  dropout_layer dropout;
  linear_layer linear2{C.dim_feedforward, C.d_model};
  norm_layer norm1, norm2;
  dropout_layer dropout1, dropout2;

  constexpr BasicTransformerEncoderLayer() : BasicTransformerEncoderLayer(0.1) {}
  /// A probability outside [0, 1], or an eps below 0, is an xla::error.
  constexpr explicit BasicTransformerEncoderLayer(double dropout_p, Scalar layer_norm_eps = 1e-5)
      : norm1(C.d_model, layer_norm_eps), norm2(C.d_model, layer_norm_eps) {
    if constexpr (C.dropout) self_attn.dropout = dropout = dropout1 = dropout2 = Dropout(dropout_p);
  }

  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& src, const options_type& options = {},
                                    caller loc = here()) const {
    if constexpr (C.norm_first) {
      const Tensor<T, R> x = src + attention(norm1(src, loc), options, loc);
      return x + feed_forward(norm2(x), loc);
    } else {
      const Tensor<T, R> x = norm1(src + attention(src, options, loc), loc);
      return norm2(x + feed_forward(x, loc));
    }
  }
  XLA_MODULE(self_attn, linear1, dropout, linear2, norm1, norm2, dropout1, dropout2)

 private:
  template <int R>
  constexpr Tensor<T, R> attention(const Tensor<T, R>& x, const options_type& o, caller loc) const {
    return dropout1(self_attn(x,
                              {.key_padding_mask = o.src_key_padding_mask,
                               .attn_mask = o.src_mask,
                               .is_causal = o.is_causal},
                              loc));
  }
  template <int R>
  constexpr Tensor<T, R> feed_forward(const Tensor<T, R>& x, caller loc) const {
    return dropout2(detail::transformer_feed_forward<C.activation>(*this, x, loc));
  }
};
template <auto... C>
using TransformerEncoderLayer =
    BasicTransformerEncoderLayer<float, TransformerEncoderLayerConfig{C...}>;

/// Options of an encoder beyond PyTorch's.
struct TransformerEncoderConfig {
  /// Runs the layers as one loop whose body is recorded once; the program includes
  /// <xla/loop/scan_layers.hpp>. It pays with many layers.
  bool scan_layers = false;
};

/// NumLayers layers, one after the other, then a norm, like torch.nn.TransformerEncoder:
/// nn::TransformerEncoder<nn::TransformerEncoderLayer<512, 8>, 6>. Padding is computed like
/// everything else, as in PyTorch while training (in evaluation PyTorch may leave zeros there).
template <class Layer, int NumLayers, class Norm = Identity,
          TransformerEncoderConfig C = TransformerEncoderConfig{}>
struct TransformerEncoder {
  using value_type = typename Layer::value_type;
  using options_type = TransformerEncoderOptions<value_type>;
  std::array<Layer, static_cast<std::size_t>(NumLayers)> layers;
  Norm norm;

  constexpr TransformerEncoder() = default;
  /// Each layer is a copy of one, as in PyTorch.
  constexpr explicit TransformerEncoder(const Layer& encoder_layer, Norm last = {})
      : norm(std::move(last)) {
    layers.fill(encoder_layer);
  }
  template <int R>
  constexpr Tensor<value_type, R> operator()(const Tensor<value_type, R>& src,
                                             const options_type& options = {},
                                             caller loc = here()) const {
    const typename Layer::options_type of_layer{
        .src_mask = options.mask,
        .src_key_padding_mask = options.src_key_padding_mask,
        .is_causal = options.is_causal};
    return norm(detail::through_layers<detail::layer_calls{.scan = C.scan_layers}>(layers, src,
                                                                                   of_layer, loc));
  }
  XLA_MODULE(layers, norm)
};

}  // namespace xla::nn
