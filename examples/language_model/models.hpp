// SPDX-License-Identifier: Apache-2.0
// The models of PyTorch's word_language_model, with its names of parameters.
#pragma once

#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <xla/nn/recurrent.hpp>
#include <xla/xla.hpp>

#include "text.hpp"

namespace nn = xla::nn;

// --emsize, --nhid, --nlayers and --nhead of PyTorch's program: here a model's type has its sizes.
#ifndef XLA_LANGUAGE_MODEL_SIZES
#define XLA_LANGUAGE_MODEL_SIZES 200, 200, 2, 2
#endif
struct Sizes {
  int emsize, nhid, nlayers, nhead;
};
inline constexpr Sizes sizes{XLA_LANGUAGE_MODEL_SIZES};

using Features = xla::Tensor<float, 3>;  // (time, batch, features)

inline nn::Embedding make_embedding(std::int64_t tokens) {
  nn::Embedding embedding(tokens, sizes.emsize);
  nn::init::uniform_(embedding.weight, -0.1f, 0.1f);
  return embedding;
}

/// The layer after the model. Tied, it has a bias alone and takes the weight of the embedding.
template <bool Tied>
using Decoder = std::conditional_t<Tied, nn::TiedLinear, nn::Linear>;

template <bool Tied>
Decoder<Tied> make_decoder(std::int64_t features, std::int64_t tokens) {
  Decoder<Tied> decoder(features, tokens);
  if constexpr (!Tied) nn::init::uniform_(decoder.weight, -0.1f, 0.1f);
  nn::init::zeros_(decoder.bias);
  return decoder;
}
template <bool Tied>
constexpr Features decode(const Decoder<Tied>& decoder, const Features& x,
                          const nn::Embedding& embedding) {
  if constexpr (Tied) return decoder(x, embedding.weight);
  else return decoder(x);
}

/// Rnn is nn::LSTM or nn::GRU.
template <class Rnn, bool Tied>
struct RecurrentModel {
  static_assert(!Tied || sizes.emsize == sizes.nhid, "language_model: --tied needs nhid = emsize");
  using state = typename Rnn::state;
  nn::Dropout drop;
  nn::Embedding encoder;
  Rnn rnn;
  Decoder<Tied> decoder;

  constexpr RecurrentModel() = default;
  RecurrentModel(std::int64_t tokens, double dropout)
      : drop(dropout),
        encoder(make_embedding(tokens)),
        rnn(dropout),
        decoder(make_decoder<Tied>(sizes.nhid, tokens)) {}

  constexpr auto operator()(const Tokens& tokens, const state& hidden) const {
    const auto [ys, last] = rnn(drop(encoder(tokens)), hidden);
    return std::pair(decode<Tied>(decoder, drop(ys), encoder), last);
  }
  static state first_state(std::int64_t batch) {
    const auto h = xla::zeros<float>({sizes.nlayers, batch, sizes.nhid});
    if constexpr (std::is_same_v<state, Features>) return h;
    else return {h, h};
  }
  XLA_MODULE(drop, encoder, rnn, decoder)
};

/// Sines and cosines of each position in turn: (time, 1, features).
constexpr Features positions(const xla::Size& time) {
  const auto at = xla::unsqueeze(xla::arange<float>(time), 1);
  const auto even = xla::arange<float>(sizes.emsize / 2) * 2.0f;
  const auto angle = at * xla::exp(even * static_cast<float>(-9.210340371976184 / sizes.emsize));
  const auto both = xla::stack({xla::sin(angle), xla::cos(angle)}, 2);
  return xla::unsqueeze(xla::flatten<1, 2>(both), 1);
}

/// An encoder in which a token attends to itself and to those before it in its piece.
template <bool Tied>
struct TransformerModel {
  using layer = nn::TransformerEncoderLayer<nn::TransformerEncoderLayerConfig{
      .d_model = sizes.emsize, .nhead = sizes.nhead, .dim_feedforward = sizes.nhid}>;
  using state = std::tuple<>;  // nothing goes from one piece to the next
  nn::Dropout pos_encoder;
  nn::TransformerEncoder<layer, sizes.nlayers, nn::LayerNorm> encoder;
  nn::Embedding input_emb;
  Decoder<Tied> decoder;
  xla::Scalar scale = 1;

  constexpr TransformerModel() = default;
  TransformerModel(std::int64_t tokens, double dropout)
      : pos_encoder(dropout),
        encoder(layer(dropout), nn::LayerNorm(sizes.emsize)),
        input_emb(make_embedding(tokens)),
        decoder(make_decoder<Tied>(sizes.emsize, tokens)),
        scale(std::sqrt(double{sizes.emsize})) {}

  constexpr auto operator()(const Tokens& tokens, const state& hidden) const {
    const Features x = pos_encoder(input_emb(tokens) * scale + positions(tokens.size(0)));
    return std::pair(decode<Tied>(decoder, encoder(x, {.is_causal = true}), input_emb), hidden);
  }
  static state first_state(std::int64_t) { return {}; }
  XLA_MODULE(pos_encoder, encoder, input_emb, decoder, scale)
};

template <bool Tied>
using LstmModel = RecurrentModel<nn::LSTM<nn::LSTMConfig{.input_size = sizes.emsize,
                                                         .hidden_size = sizes.nhid,
                                                         .num_layers = sizes.nlayers,
                                                         .dropout = true}>,
                                 Tied>;
template <bool Tied>
using GruModel = RecurrentModel<nn::GRU<nn::GRUConfig{.input_size = sizes.emsize,
                                                      .hidden_size = sizes.nhid,
                                                      .num_layers = sizes.nlayers,
                                                      .dropout = true}>,
                                Tied>;
