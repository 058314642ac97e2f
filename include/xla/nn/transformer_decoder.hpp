// SPDX-License-Identifier: Apache-2.0
#pragma once

// PyTorch's transformer decoder, which attends to an encoder's result. Not in xla.hpp.

#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "xla/module.hpp"
#include "xla/nn/init.hpp"
#include "xla/nn/transformer.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/derived/range.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/where.hpp"

namespace xla::nn {

/// The structure of a layer of a decoder: nn::TransformerDecoderLayer<512, 8> is
/// nn::TransformerDecoderLayer<nn::TransformerDecoderLayerConfig{.d_model = 512, .nhead = 8}>.
using TransformerDecoderLayerConfig = TransformerEncoderLayerConfig;

/// Further arguments of a call of a decoder, or of one of its layers, by PyTorch's names; masks as
/// in MultiheadAttention.
template <class T>
struct TransformerDecoderOptions {
  AttentionMask<T, 3> tgt_mask = {};     ///< (target, target) or one for each batch × head
  AttentionMask<T, 3> memory_mask = {};  ///< (target, memory) or one for each batch × head
  AttentionMask<T, 2> tgt_key_padding_mask = {};     ///< (batch, target)
  AttentionMask<T, 2> memory_key_padding_mask = {};  ///< (batch, memory)
  bool tgt_is_causal = false;     ///< a position attends to itself and earlier ones
  bool memory_is_causal = false;  ///< position i attends to positions 0 … i of the memory
};

/// Self-attention, attention to a memory (an encoder's result for another sequence), and a
/// feed-forward layer, each added to its input, like torch.nn.TransformerDecoderLayer. Target and
/// memory are (sequence, batch, features) or, if the configuration is batch_first, (batch,
/// sequence, features), or have no batch axis; the result is shaped like the target. Dropout is 0.1
/// by default. Vaswani et al. (2017).
template <class T, TransformerDecoderLayerConfig C>
struct BasicTransformerDecoderLayer {
  using value_type = T;
  using options_type = TransformerDecoderOptions<T>;
  using linear_layer = std::conditional_t<C.bias, BasicLinear<T>, BasicLinearNoBias<T>>;
  using norm_layer = BasicLayerNorm<T, C.bias>;
  using dropout_layer = std::conditional_t<C.dropout, Dropout, Identity>;

  BasicMultiheadAttention<T, C.attention()> self_attn, multihead_attn;
  linear_layer linear1{C.d_model, C.dim_feedforward};
  dropout_layer dropout;
  linear_layer linear2{C.dim_feedforward, C.d_model};
  norm_layer norm1, norm2, norm3;
  dropout_layer dropout1, dropout2, dropout3;

  constexpr BasicTransformerDecoderLayer() : BasicTransformerDecoderLayer(0.1) {}
  /// A probability outside [0, 1], or an eps below 0, is an xla::error.
  constexpr explicit BasicTransformerDecoderLayer(double dropout_p, Scalar layer_norm_eps = 1e-5)
      : norm1(C.d_model, layer_norm_eps),
        norm2(C.d_model, layer_norm_eps),
        norm3(C.d_model, layer_norm_eps) {
    if constexpr (C.dropout)
      self_attn.dropout = multihead_attn.dropout = dropout = dropout1 = dropout2 = dropout3 =
          Dropout(dropout_p);
  }

  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& tgt, const Tensor<T, R>& memory,
                                    const options_type& options = {}, caller loc = here()) const {
    if constexpr (C.norm_first) {
      const Tensor<T, R> x = tgt + self_attention(norm1(tgt, loc), options, loc);
      const Tensor<T, R> y = x + cross_attention(norm2(x, loc), memory, options, loc);
      return y + feed_forward(norm3(y, loc), loc);
    } else {
      const Tensor<T, R> x = norm1(tgt + self_attention(tgt, options, loc), loc);
      const Tensor<T, R> y = norm2(x + cross_attention(x, memory, options, loc), loc);
      return norm3(y + feed_forward(y, loc), loc);
    }
  }
  XLA_MODULE(self_attn, multihead_attn, linear1, dropout, linear2, norm1, norm2, norm3, dropout1,
             dropout2, dropout3)

 private:
  template <int R>
  constexpr Tensor<T, R> self_attention(const Tensor<T, R>& x, const options_type& o,
                                        caller loc) const {
    return dropout1(self_attn(x,
                              {.key_padding_mask = o.tgt_key_padding_mask,
                               .attn_mask = o.tgt_mask,
                               .is_causal = o.tgt_is_causal},
                              loc));
  }
  template <int R>
  constexpr Tensor<T, R> cross_attention(const Tensor<T, R>& x, const Tensor<T, R>& memory,
                                         const options_type& o, caller loc) const {
    return dropout2(multihead_attn(x, memory, memory,
                                   {.key_padding_mask = o.memory_key_padding_mask,
                                    .attn_mask = o.memory_mask,
                                    .is_causal = o.memory_is_causal},
                                   loc));
  }
  template <int R>
  constexpr Tensor<T, R> feed_forward(const Tensor<T, R>& x, caller loc) const {
    return dropout3(detail::transformer_feed_forward<C.activation>(*this, x, loc));
  }
};
template <auto... C>
using TransformerDecoderLayer =
    BasicTransformerDecoderLayer<float, TransformerDecoderLayerConfig{C...}>;

/// NumLayers layers, one after the other, then a norm, like torch.nn.TransformerDecoder:
/// nn::TransformerDecoder<nn::TransformerDecoderLayer<512, 8>, 6>.
template <class Layer, int NumLayers, class Norm = Identity>
struct TransformerDecoder {
  using value_type = typename Layer::value_type;
  using options_type = TransformerDecoderOptions<value_type>;
  std::array<Layer, static_cast<std::size_t>(NumLayers)> layers;
  Norm norm;

  constexpr TransformerDecoder() = default;
  /// Each layer is a copy of one, as in PyTorch.
  constexpr explicit TransformerDecoder(const Layer& decoder_layer, Norm last = {})
      : norm(std::move(last)) {
    layers.fill(decoder_layer);
  }
  template <int R>
  constexpr Tensor<value_type, R> operator()(const Tensor<value_type, R>& tgt,
                                             const Tensor<value_type, R>& memory,
                                             const options_type& options = {},
                                             caller loc = here()) const {
    Tensor<value_type, R> x = tgt;
    for (const Layer& layer : layers) x = layer(x, memory, options, loc);
    return norm(x);
  }
  XLA_MODULE(layers, norm)
};

/// The structure of an nn::Transformer, by PyTorch's names and in its order, with its defaults.
struct TransformerConfig {
  int d_model = 512;
  int nhead = 8;
  int num_encoder_layers = 6;
  int num_decoder_layers = 6;
  int dim_feedforward = 2048;
  bool dropout = true;  ///< the constructor takes its probability
  TransformerActivation activation = TransformerActivation::relu;
  bool batch_first = false;  ///< (batch, sequence, features), not (sequence, batch, features)
  bool norm_first = false;   ///< normalized before attention and feed-forward layer, not after
  bool bias = true;          ///< of linear layers and of normalization

  constexpr TransformerEncoderLayerConfig layer() const {
    return {d_model, nhead, dim_feedforward, dropout, activation, batch_first, norm_first, bias};
  }
};

/// Further arguments of a call of a transformer, by PyTorch's names.
template <class T>
struct TransformerOptions {
  AttentionMask<T, 3> src_mask = {};     ///< (source, source) or one for each batch × head
  AttentionMask<T, 3> tgt_mask = {};     ///< (target, target) or one for each batch × head
  AttentionMask<T, 3> memory_mask = {};  ///< (target, source) or one for each batch × head
  AttentionMask<T, 2> src_key_padding_mask = {};     ///< (batch, source)
  AttentionMask<T, 2> tgt_key_padding_mask = {};     ///< (batch, target)
  AttentionMask<T, 2> memory_key_padding_mask = {};  ///< (batch, source)
  bool src_is_causal = false;     ///< a position attends to itself and earlier ones
  bool tgt_is_causal = false;     ///< the same for the target
  bool memory_is_causal = false;  ///< position i attends to positions 0 … i of the memory

  constexpr TransformerEncoderOptions<T> encoder() const {
    return {src_mask, src_key_padding_mask, src_is_causal};
  }
  constexpr TransformerDecoderOptions<T> decoder() const {
    return {tgt_mask,      memory_mask,     tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal, memory_is_causal};
  }
};

/// An encoder that reads a source, and a decoder that attends to its result at each position of a
/// target, like torch.nn.Transformer with its initialisation. Sequences as in
/// TransformerDecoderLayer; source and target may differ in length. Vaswani et al. (2017).
template <class T, TransformerConfig C>
struct BasicTransformer {
  using value_type = T;
  using options_type = TransformerOptions<T>;
  using norm_layer = BasicLayerNorm<T, C.bias>;
  using encoder_layer = BasicTransformerEncoderLayer<T, C.layer()>;
  using decoder_layer = BasicTransformerDecoderLayer<T, C.layer()>;

  TransformerEncoder<encoder_layer, C.num_encoder_layers, norm_layer> encoder;
  TransformerDecoder<decoder_layer, C.num_decoder_layers, norm_layer> decoder;

  constexpr BasicTransformer() : BasicTransformer(0.1) {}
  /// A probability outside [0, 1], or an eps below 0, is an xla::error.
  constexpr explicit BasicTransformer(double dropout_p, Scalar layer_norm_eps = 1e-5)
      : encoder(encoder_layer(dropout_p, layer_norm_eps), norm_layer(C.d_model, layer_norm_eps)),
        decoder(decoder_layer(dropout_p, layer_norm_eps), norm_layer(C.d_model, layer_norm_eps)) {
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// All matrices are uniform by Xavier's rule.
  void reset_parameters() {
    for_each_parameter(*this, [](auto& p) {
      if constexpr (std::remove_cvref_t<decltype(p)>::rank > 1) init::xavier_uniform_(p);
    });
  }

  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& src, const Tensor<T, R>& tgt,
                                    const options_type& options = {}, caller loc = here()) const {
    return decoder(tgt, encoder(src, options.encoder(), loc), options.decoder(), loc);
  }
  /// The additive mask (n, n): -infinity where a position is after another, else 0.
  static constexpr Tensor<T, 2> generate_square_subsequent_mask(const Size& n) {
    const auto at = arange<T>(n);
    return where(at > unsqueeze(at, 1), -std::numeric_limits<T>::infinity(), T(0));
  }
  XLA_MODULE(encoder, decoder)
};
/// nn::Transformer<>, or nn::Transformer<nn::TransformerConfig{.d_model = 256, .nhead = 4}>.
template <auto... C>
using Transformer = BasicTransformer<float, TransformerConfig{C...}>;

}  // namespace xla::nn
