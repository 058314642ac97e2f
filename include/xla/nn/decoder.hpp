// SPDX-License-Identifier: Apache-2.0
#pragma once

// A decoder-only transformer, GPT-2's and Llama's alike, by a structure in its type. Files are
// loaded by ext/pretrained.hpp; generating is generate.hpp.

#include <array>
#include <cmath>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/nn/attention.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/embedding.hpp"
#include "xla/nn/normalization.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/minmax.hpp"
#include "xla/run/trace/checkpoint.hpp"
#include "xla/run/trace/step.hpp"

namespace xla::nn {

enum class DecoderNorm { rms, layer };
enum class DecoderActivation { swiglu, gelu, gelu_tanh };
/// pytorch: the initialisation of nn::Linear and nn::Embedding. normal: as in GPT-2, with standard
/// deviation 0.02, or 0.02 / √(2 layers) for projections into the residual stream, and biases 0.
enum class DecoderInit { pytorch, normal };

/// The structure of a decoder: Decoder<DecoderConfig{.hidden = 256, .layers = 4, …}>.
struct DecoderConfig {
  int hidden = 128;
  int layers = 2;
  int heads = 4;
  int kv_heads = 4;
  int intermediate = 512;
  int vocabulary = 256;
  int max_positions = 0;    ///< of the learned embedding of positions; 0: none
  double rotary_theta = 0;  ///< base of the rotary embedding; 0: none
  RotaryScaling rotary_scaling{};
  bool causal = true;  ///< a token attends to itself and earlier ones
  bool tied_head = false;
  bool bias = false;               ///< of the projections
  bool checkpoint_layers = false;  ///< layers save nothing for backward; see xla::checkpoint
  /// Runs the layers as one loop whose body is recorded once; the program includes
  /// <xla/loop/scan_layers.hpp>. It pays with many layers.
  bool scan_layers = false;
  bool dropout = false;  ///< of embeddings, attention weights and residual branches; 0.1 at first
  DecoderNorm norm = DecoderNorm::rms;
  double norm_eps = 0;  ///< 0: 1e-6 of rms, 1e-5 of layer
  DecoderActivation activation = DecoderActivation::swiglu;
  DecoderInit init = DecoderInit::pytorch;
  dtype element = dtype::float32;  ///< of weights and logits: float32, float64 or bfloat16

  /// The number that norms add to a variance or mean square.
  constexpr double epsilon() const {
    return norm_eps > 0 ? norm_eps : norm == DecoderNorm::rms ? 1e-6 : 1e-5;
  }
};

/// The decoder of PyTorch/XLA's eager-mode benchmark: 214,176,768 parameters, no positions, no
/// mask.
inline constexpr DecoderConfig seed_decoder{.hidden = 1024,
                                            .layers = 2,
                                            .heads = 8,
                                            .kv_heads = 4,
                                            .intermediate = 32768,
                                            .vocabulary = 3200,
                                            .causal = false};

/// The same at a size for one processor, 8 key/value heads: 9,603,584 parameters.
inline constexpr DecoderConfig small_decoder{.hidden = 512,
                                             .layers = 2,
                                             .heads = 8,
                                             .kv_heads = 8,
                                             .intermediate = 1376,
                                             .vocabulary = 3200,
                                             .causal = false};

/// GPT on characters: nanoGPT's model for a processor, 64 characters at a time.
inline constexpr DecoderConfig char_decoder{.hidden = 128,
                                            .layers = 4,
                                            .heads = 4,
                                            .kv_heads = 4,
                                            .intermediate = 512,
                                            .vocabulary = 65,
                                            .max_positions = 64,
                                            .tied_head = true,
                                            .bias = true,
                                            .norm = DecoderNorm::layer,
                                            .activation = DecoderActivation::gelu,
                                            .init = DecoderInit::normal};

namespace detail {

/// The types of a decoder's parts; Identity replaces an absent one.
template <DecoderConfig C>
struct decoder_parts {
  using value_type = cpp_type<C.element>;
  static_assert(floating_type<value_type>,
                "xla::nn::Decoder: its elements are float32, float64 or bfloat16");
  using stream = Tensor<value_type, 3>;
  static constexpr bool is_rms = C.norm == DecoderNorm::rms;
  static constexpr double eps = C.epsilon();
  using norm = std::conditional_t<is_rms, BasicRMSNorm<value_type>, BasicLayerNorm<value_type>>;
  using unbiased = BasicLinearNoBias<value_type>;
  using projection = std::conditional_t<C.bias, BasicLinear<value_type>, unbiased>;
  using attention = Attention<C.hidden, C.heads, C.kv_heads, projection, RotaryBase(C.rotary_theta),
                              C.rotary_scaling>;
  using gelu = std::conditional_t<C.activation == DecoderActivation::gelu, GELU, GELUTanh>;
  using feed_forward = std::conditional_t<C.activation == DecoderActivation::swiglu,
                                          SwiGLU<C.hidden, C.intermediate, projection>,
                                          FeedForward<C.hidden, C.intermediate, projection, gelu>>;
  using embedding = BasicEmbedding<value_type>;
  using counter = Buffer<std::int64_t, 1>;
  using positions = std::conditional_t<(C.max_positions > 0), embedding, Identity>;
  using head = std::conditional_t<C.tied_head, Identity, unbiased>;
  using dropout = std::conditional_t<C.dropout, Dropout, Identity>;
};

template <class Module>
constexpr Module make_sized(std::int64_t a, std::int64_t b) {
  if constexpr (std::is_same_v<Module, Identity>) return {};
  else return Module{a, b};
}

}  // namespace detail

/// One layer: attention, then the feed-forward layer, each applied to the normalized stream and
/// added to it.
template <DecoderConfig C>
struct DecoderLayer {
  using parts = detail::decoder_parts<C>;
  using stream = typename parts::stream;

  typename parts::norm input_layernorm{C.hidden, parts::eps};
  typename parts::attention self_attn;
  typename parts::norm post_attention_layernorm{C.hidden, parts::eps};
  typename parts::feed_forward mlp;

  /// x (batch, sequence, hidden); drop is the decoder's dropout; a mask as in attention.
  template <class... Mask>
  constexpr stream operator()(const stream& x, const typename parts::dropout& drop,
                              const Mask&... mask) const {
    AttentionOptions options{.causal = C.causal};
    if constexpr (C.dropout)
      if (drop.training) options.dropout_p = drop.p;
    const stream h = x + drop(self_attn(input_layernorm(x), options, mask...));
    return h + drop(mlp(post_attention_layernorm(h)));
  }
  /// x of tokens at positions, after those in the cache; a mask as in attention.
  template <class Seen, class... Mask>
  constexpr stream operator()(const stream& x, const typename parts::dropout& drop,
                              const Seen& seen, const Tensor<std::int64_t, 1>& positions,
                              const Mask&... mask) const {
    const stream h = x + drop(self_attn(input_layernorm(x), seen, positions, mask...));
    return h + drop(mlp(post_attention_layernorm(h)));
  }
  XLA_MODULE(input_layernorm, self_attn, post_attention_layernorm, mlp)
};

namespace detail {
/// The function that reports tokens that do not fit a cache.
struct cache {
  static constexpr auto name = "KeyValueCache";
};
struct full_cache {
  static constexpr auto name = "KeyValueCache: the cache is full, reset() empties it";
};
}  // namespace detail

/// The state of a decoder for Batch texts of at most Length tokens, so that each token is computed
/// once: keys and values of every layer, and the number of tokens so far. Attention reads all
/// Length positions each time. Pope et al. (2022).
template <DecoderConfig C, int Length, int Batch = 1>
struct KeyValueCache {
  static_assert(Length > 0 && Batch > 0, "xla::nn::KeyValueCache: needs at least one position");
  static_assert(
      C.causal,
      "xla::nn::KeyValueCache: only in a causal decoder do tokens not change those before "
      "them; see DecoderConfig::causal");
  static_assert(C.max_positions == 0 || Length <= C.max_positions,
                "xla::nn::KeyValueCache: Length is larger than the decoder's max_positions");
  static constexpr int length = Length, batch = Batch;

  using value_type = typename detail::decoder_parts<C>::value_type;
  std::array<KeyValues<Batch, C.kv_heads, Length, C.hidden / C.heads, value_type>, C.layers> layers;
  typename detail::decoder_parts<C>::counter position{{1}};  ///< the next token's position

  /// Forgets all tokens. (It writes zeros, because a weight of 0 times NaN would be NaN.)
  constexpr void reset() const {
    for (const auto& layer : layers) {
      layer.keys.copy_(zeros_like(layer.keys));
      layer.values.copy_(zeros_like(layer.values));
    }
    auto& next = as_dependent<KeyValueCache>(position);
    next.copy_(zeros_like(next));
  }
  XLA_MODULE(layers, position)
};

/// A decoder-only transformer: tokens (batch, sequence) to logits (batch, sequence, vocabulary).
/// Llama's (RMSNorm, rotary positions, SwiGLU) and GPT's (LayerNorm, learned positions, GELU,
/// dropout) are two of its configurations; models/llama.hpp and models/gpt2.hpp have those of their
/// published weights. Radford et al. (2019); Touvron et al. (2023).
template <DecoderConfig C>
struct Decoder {
  using parts = detail::decoder_parts<C>;
  using value_type = typename parts::value_type;
  using stream = Tensor<value_type, 3>;
  static constexpr DecoderConfig config = C;

  typename parts::embedding embed_tokens{C.vocabulary, C.hidden};
  typename parts::positions embed_positions =
      detail::make_sized<typename parts::positions>(C.max_positions, C.hidden);
  std::array<DecoderLayer<C>, C.layers> layers;
  typename parts::norm norm{C.hidden, parts::eps};
  typename parts::head lm_head = detail::make_sized<typename parts::head>(C.hidden, C.vocabulary);
  typename parts::dropout drop;

  constexpr Decoder() {
    if constexpr (C.dropout) drop.p = 0.1;
    if constexpr (C.init == DecoderInit::normal)
      if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// DecoderInit::normal, whatever the configuration says.
  void reset_parameters() {
    named_parameters(*this, [](const std::string& name, auto& p) {
      if (name.ends_with(".bias")) init::zeros_(p);
      else if (name.ends_with("norm.weight")) init::ones_(p);
      else {
        const bool added = name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
        using number = std::conditional_t<std::is_same_v<value_type, double>, double, float>;
        constexpr auto spread = static_cast<number>(0.02);
        init::normal_(p, value_type(0),
                      value_type(added ? spread / std::sqrt(number{2} * C.layers) : spread));
      }
    });
  }

  constexpr stream operator()(const Tensor<std::int64_t, 2>& tokens) const { return run(tokens); }
  /// The same, attending only to tokens for which present (batch, sequence) holds, which excludes
  /// padding.
  constexpr stream operator()(const Tensor<std::int64_t, 2>& tokens,
                              const Tensor<bool, 2>& present) const {
    return run(tokens, unsqueeze(unsqueeze(as_dependent<Decoder>(present), 1), 1));
  }
  /// The same for the next tokens of the texts in a cache, which are added to it: those of a prompt
  /// at once, then one by one. If the cache lacks room for all of them, it is an index_error, and
  /// nothing is added. Not recorded for backward().
  template <int Length, int Batch>
  constexpr stream operator()(const Tensor<std::int64_t, 2>& tokens,
                              const KeyValueCache<C, Length, Batch>& cache) const {
    return no_grad(tokens, [&] { return score(append(tokens, cache)); });
  }
  /// Only the logits after the last of these tokens: (batch, vocabulary).
  template <int Length, int Batch>
  constexpr Tensor<value_type, 2> next_logits(const Tensor<std::int64_t, 2>& tokens,
                                              const KeyValueCache<C, Length, Batch>& cache) const {
    return no_grad(tokens, [&] { return score_last(append(tokens, cache)); });
  }
  /// The same for texts that begin at positions of their own in the cache, starts (batch):
  /// positions before are padding, which is not attended to, and positions are counted from there.
  template <int Length, int Batch>
  constexpr Tensor<value_type, 2> next_logits(const Tensor<std::int64_t, 2>& tokens,
                                              const KeyValueCache<C, Length, Batch>& cache,
                                              const Tensor<std::int64_t, 1>& starts) const {
    return no_grad(tokens, [&] { return score_last(append(tokens, cache, starts)); });
  }
  XLA_MODULE(embed_tokens, embed_positions, layers, norm, lm_head, drop)

 private:
  template <class... Mask>
  constexpr stream run(const Tensor<std::int64_t, 2>& tokens, const Mask&... mask) const {
    stream h = embed_tokens(tokens);
    if constexpr (C.max_positions > 0) h = h + narrow(embed_positions.weight, 0, 0, tokens.size(1));
    constexpr detail::layer_calls how{.scan = C.scan_layers, .checkpoint = C.checkpoint_layers};
    return score(detail::through_layers<how>(layers, drop(h), drop, mask...));
  }
  /// Runs the layers on tokens that are added to a cache, for texts that begin at starts.
  template <int Length, int Batch, class... Starts>
  constexpr stream append(const Tensor<std::int64_t, 2>& tokens,
                          const KeyValueCache<C, Length, Batch>& cache,
                          const Starts&... starts) const {
    const Size n = tokens.size(1);
    check_size<detail::cache>(tokens, 0, Batch);
    const Tensor<std::int64_t, 1> positions = check_index<detail::full_cache>(
        cache.position + arange<typename parts::counter::value_type>(n), Length);
    stream h = embed_tokens(tokens);
    if constexpr (C.max_positions > 0 && sizeof...(Starts) > 0)
      h = h + embed_positions(maximum(
                  unsqueeze(as_dependent<Decoder>(positions), 0) - unsqueeze(starts..., 1), 0));
    else if constexpr (C.max_positions > 0)
      h = h + index_select(embed_positions.weight, 0, positions);
    h = drop(h);
    const auto run_layers = [&](const auto&... mask) {
      if constexpr (C.scan_layers)
        h = scan_layers(layers, h, drop, per_layer(cache.layers), positions, mask...);
      else
        for (std::size_t i = 0; i < layers.size(); ++i)
          h = layers[i](h, drop, cache.layers[i], positions, mask...);
    };
    run_layers(seen_positions<Length>(positions, starts)...);
    cache.position.copy_(cache.position + n);
    return h;
  }
  /// The cache positions to which tokens at positions attend: (batch, 1, sequence, Length). Padding
  /// attends to itself, because it needs at least one key.
  template <int Length>
  static constexpr Tensor<bool, 4> seen_positions(const Tensor<std::int64_t, 1>& positions,
                                                  const Tensor<std::int64_t, 1>& starts) {
    const auto position = unsqueeze(arange<typename parts::counter::value_type>(Length), 0);
    const auto at = unsqueeze(as_dependent<Decoder>(positions), 1);
    const auto own = unsqueeze(unsqueeze(position == at, 0), 0);
    const auto before = unsqueeze(unsqueeze(position <= at, 0), 0);
    const auto begun =
        unsqueeze(unsqueeze(position >= unsqueeze(as_dependent<Decoder>(starts), 1), 1), 1);
    return (before && begun) || own;
  }
  constexpr Tensor<value_type, 2> score_last(const stream& x) const {
    return squeeze<1>(score(narrow(x, 1, x.size(1) - 1, 1)));
  }
  constexpr stream score(const stream& x) const {
    const stream h = norm(x);
    if constexpr (C.tied_head) return linear(h, embed_tokens.weight);
    else return lm_head(h);
  }
};

}  // namespace xla::nn
