// SPDX-License-Identifier: Apache-2.0
#pragma once

// BERT with its heads, by Hugging Face's names of members. Tokenizers are in data/ and ext/.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "xla/models/names.hpp"
#include "xla/models/parts.hpp"
#include "xla/models/pretrained.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/embedding.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/normalization.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/derived/attention.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/tanh.hpp"

namespace xla::models {

/// The structure of a BERT, by Hugging Face's names; the defaults are bert-base-uncased.
struct BertConfig {
  int vocab_size = 30522;
  int hidden_size = 768;
  int num_hidden_layers = 12;
  int num_attention_heads = 12;
  int intermediate_size = 3072;
  int max_position_embeddings = 512;
  int type_vocab_size = 2;  ///< kinds of segments: a pair of texts has two
  bool dropout = true;      ///< of embeddings, attention and the residual branches
  double layer_norm_eps = 1e-12;
  /// Runs the layers as one loop whose body is recorded once; the program includes
  /// <xla/loop/scan_layers.hpp>. It pays with many layers.
  bool scan_layers = false;
};

inline constexpr BertConfig bert_base{};
inline constexpr BertConfig bert_large{.hidden_size = 1024,
                                       .num_hidden_layers = 24,
                                       .num_attention_heads = 16,
                                       .intermediate_size = 4096};

namespace detail {

template <BertConfig C>
struct bert_parts {
  using stream = Tensor<float, 3>;  ///< (batch, sequence, hidden_size)
  using dropout = std::conditional_t<C.dropout, nn::Dropout, nn::Identity>;
  static constexpr double eps = C.layer_norm_eps;
  static constexpr dropout make_dropout() {
    if constexpr (C.dropout) return nn::Dropout(0.1);
    else return {};
  }
};

/// Weights normal with a standard deviation of 0.02, biases 0, as Hugging Face's.
template <class Module>
void init_bert(Module& module) {
  named_parameters(module, [](const std::string& name, auto& p) {
    if (name.ends_with("bias")) nn::init::zeros_(p);
    else if (name.ends_with("LayerNorm.weight")) nn::init::ones_(p);
    else nn::init::normal_(p, 0, 0.02f);
  });
}

}  // namespace detail

/// The sum of the embeddings of token, position and segment, normalized.
template <BertConfig C>
struct BertEmbeddings {
  using parts = detail::bert_parts<C>;
  static constexpr std::int64_t padding = 0;  ///< the token [PAD], whose row is not trained

  nn::Embedding word_embeddings{C.vocab_size, C.hidden_size, padding};
  nn::Embedding position_embeddings{C.max_position_embeddings, C.hidden_size};
  nn::Embedding token_type_embeddings{C.type_vocab_size, C.hidden_size};
  nn::LayerNorm LayerNorm{C.hidden_size, parts::eps};
  typename parts::dropout dropout = parts::make_dropout();

  /// Without segments: all tokens are of segment 0.
  constexpr auto operator()(const Tensor<std::int64_t, 2>& input_ids) const {
    return embed(word_embeddings(input_ids) + narrow(token_type_embeddings.weight, 0, 0, 1));
  }
  constexpr auto operator()(const Tensor<std::int64_t, 2>& input_ids,
                            const Tensor<std::int64_t, 2>& token_type_ids) const {
    return embed(word_embeddings(input_ids) + token_type_embeddings(token_type_ids));
  }
  XLA_MODULE(word_embeddings, position_embeddings, token_type_embeddings, LayerNorm, dropout)

 private:
  constexpr auto embed(const typename parts::stream& x) const {
    return dropout(LayerNorm(x + narrow(position_embeddings.weight, 0, 0, x.size(1))));
  }
};

/// Self-attention: every token attends to all tokens, or to those that a mask allows.
template <BertConfig C>
struct BertSelfAttention {
  static_assert(C.num_attention_heads > 0 && C.hidden_size % C.num_attention_heads == 0,
                "xla::models::Bert: num_attention_heads has to divide hidden_size");
  using parts = detail::bert_parts<C>;

  nn::Linear query{C.hidden_size, C.hidden_size};
  nn::Linear key{C.hidden_size, C.hidden_size};
  nn::Linear value{C.hidden_size, C.hidden_size};
  typename parts::dropout dropout = parts::make_dropout();

  template <class... Mask>
  constexpr auto operator()(const typename parts::stream& x, const Mask&... mask) const {
    AttentionOptions options;
    if constexpr (C.dropout)
      if (dropout.training) options.dropout_p = dropout.p;
    return detail::join_heads<C.hidden_size>(scaled_dot_product_attention(
        heads(query(x)), heads(key(x)), heads(value(x)), mask..., options));
  }
  XLA_MODULE(query, key, value, dropout)

 private:
  static constexpr auto heads(const typename parts::stream& x) {
    return detail::split_heads<C.num_attention_heads, C.hidden_size>(x);
  }
};

/// A projection from In features, added to its residual input and normalized.
template <BertConfig C, int In>
struct BertOutput {
  using parts = detail::bert_parts<C>;
  nn::Linear dense{In, C.hidden_size};
  nn::LayerNorm LayerNorm{C.hidden_size, parts::eps};
  typename parts::dropout dropout = parts::make_dropout();

  constexpr auto operator()(const Tensor<float, 3>& x, const typename parts::stream& stream) const {
    return LayerNorm(dropout(dense(x)) + stream);
  }
  XLA_MODULE(dense, LayerNorm, dropout)
};

template <BertConfig C>
struct BertAttention {
  BertSelfAttention<C> self;
  BertOutput<C, C.hidden_size> output;

  template <class... Mask>
  constexpr auto operator()(const Tensor<float, 3>& x, const Mask&... mask) const {
    return output(self(x, mask...), x);
  }
  XLA_MODULE(self, output)
};

template <BertConfig C>
struct BertIntermediate {
  nn::Linear dense{C.hidden_size, C.intermediate_size};
  constexpr auto operator()(const Tensor<float, 3>& x) const { return gelu(dense(x)); }
  XLA_MODULE(dense)
};

template <BertConfig C>
struct BertLayer {
  BertAttention<C> attention;
  BertIntermediate<C> intermediate;
  BertOutput<C, C.intermediate_size> output;

  template <class... Mask>
  constexpr auto operator()(const Tensor<float, 3>& x, const Mask&... mask) const {
    const auto h = attention(x, mask...);
    return output(intermediate(h), h);
  }
  XLA_MODULE(attention, intermediate, output)
};

template <BertConfig C>
struct BertEncoder {
  std::array<BertLayer<C>, C.num_hidden_layers> layer;

  template <class... Mask>
  constexpr auto operator()(const Tensor<float, 3>& x, const Mask&... mask) const {
    return nn::detail::through_layers<nn::detail::layer_calls{.scan = C.scan_layers}>(layer, x,
                                                                                      mask...);
  }
  XLA_MODULE(layer)
};

/// (batch, sequence, hidden_size) to (batch, hidden_size), from the first token, [CLS].
template <BertConfig C>
struct BertPooler {
  nn::Linear dense{C.hidden_size, C.hidden_size};
  constexpr auto operator()(const Tensor<float, 3>& x) const {
    return tanh(dense(select(x, 1, 0)));
  }
  XLA_MODULE(dense)
};

/// Tokens (batch, sequence) to (batch, sequence, hidden_size), Hugging Face's last_hidden_state,
/// from which pooler makes its pooler_output. Tokens at zeros of an attention_mask (batch,
/// sequence) are padding and are not attended to; token_type_ids (batch, sequence) give each
/// token's segment. Its state has the names of transformers.BertModel, whose weights load. Files of
/// BERT with a head, such as bert-base-uncased's, contain it as "bert.": part_of(bert_names(file),
/// "bert."). A token outside the vocabulary is an index_error, a sequence longer than
/// max_position_embeddings a shape_error. Devlin, Chang, Lee and Toutanova (2018).
template <BertConfig C = bert_base, bool Pooling = true>
struct BertModel {
  using tokens = Tensor<std::int64_t, 2>;
  BertEmbeddings<C> embeddings;
  BertEncoder<C> encoder;
  std::conditional_t<Pooling, BertPooler<C>, nn::Identity> pooler;

  constexpr BertModel() {
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  void reset_parameters() {
    detail::init_bert(*this);
    fill_row_(embeddings.word_embeddings.weight, embeddings.padding, 0);
  }
  constexpr auto operator()(const tokens& input_ids) const {
    return encoder(embeddings(input_ids));
  }
  constexpr auto operator()(const tokens& input_ids, const tokens& attention_mask) const {
    return encoder(embeddings(input_ids), seen(attention_mask));
  }
  constexpr auto operator()(const tokens& input_ids, const tokens& attention_mask,
                            const tokens& token_type_ids) const {
    return encoder(embeddings(input_ids, token_type_ids), seen(attention_mask));
  }
  XLA_MODULE(embeddings, encoder, pooler)

 private:
  /// The mask in the shape that attention takes: (batch, 1, 1, sequence).
  static constexpr auto seen(const tokens& attention_mask) {
    return unsqueeze(unsqueeze(attention_mask != 0, 1), 1);
  }
};

/// Texts to logits (batch, Labels); the arguments are BertModel's.
template <BertConfig C = bert_base, int Labels = 2>
struct BertForSequenceClassification {
  BertModel<C> bert;
  typename detail::bert_parts<C>::dropout dropout = detail::bert_parts<C>::make_dropout();
  nn::Linear classifier{C.hidden_size, Labels};

  constexpr BertForSequenceClassification() {
    if (!__builtin_is_constant_evaluated()) detail::init_bert(classifier);
  }
  template <class... Inputs>
  constexpr auto operator()(const Inputs&... inputs) const {
    return classifier(dropout(bert.pooler(bert(inputs...))));
  }
  XLA_MODULE(bert, dropout, classifier)
};

template <BertConfig C>
struct BertPredictionHeadTransform {
  nn::Linear dense{C.hidden_size, C.hidden_size};
  nn::LayerNorm LayerNorm{C.hidden_size, detail::bert_parts<C>::eps};
  constexpr auto operator()(const Tensor<float, 3>& x) const { return LayerNorm(gelu(dense(x))); }
  XLA_MODULE(dense, LayerNorm)
};

/// (batch, sequence, hidden_size) to logits, with the embeddings' weight as the last layer.
template <BertConfig C>
struct BertLMPredictionHead {
  Parameter<float, 1> bias{{C.vocab_size}};
  BertPredictionHeadTransform<C> transform;
  constexpr auto operator()(const Tensor<float, 3>& x, const Tensor<float, 2>& table) const {
    return linear(transform(x), table, bias);
  }
  XLA_MODULE(bias, transform)
};

template <BertConfig C>
struct BertOnlyMLMHead {
  BertLMPredictionHead<C> predictions;
  XLA_MODULE(predictions)
};

/// Texts to logits (batch, sequence, vocab_size) of the token at each position; the arguments are
/// BertModel's. The last layer's weight is the embeddings'; files have it under one name or both.
/// For files with a pooler and other heads, such as bert-base-uncased's, call load_state_dict with
/// strict off.
template <BertConfig C = bert_base>
struct BertForMaskedLM {
  BertModel<C, false> bert;
  BertOnlyMLMHead<C> cls;

  constexpr BertForMaskedLM() {
    if (!__builtin_is_constant_evaluated()) detail::init_bert(cls);
  }
  template <class... Inputs>
  constexpr auto operator()(const Inputs&... inputs) const {
    return cls.predictions(bert(inputs...), bert.embeddings.word_embeddings.weight);
  }
  XLA_MODULE(bert, cls)
  XLA_TIED({"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
           {"cls.predictions.decoder.bias", "cls.predictions.bias"})
};

/// Renames the values of a file to current names: early BERT files, such as bert-base-uncased's,
/// call the weight and bias of LayerNorm gamma and beta. Drops position numbers, which older files
/// store in addition to the weights.
inline StateDict bert_names(StateDict state) {
  constexpr std::array<RenamedPart, 2> today{
      {{".LayerNorm.gamma", ".LayerNorm.weight"}, {".LayerNorm.beta", ".LayerNorm.bias"}}};
  std::erase_if(state,
                [](const NamedArray& a) { return a.name.ends_with("embeddings.position_ids"); });
  return renamed(std::move(state), today);
}

namespace detail {

template <BertConfig C>
struct bert_files {
  static constexpr std::string_view model_type = "bert";
  static constexpr ConfigField config[] = {
      {"vocab_size", C.vocab_size, 30522},
      {"hidden_size", C.hidden_size, 768},
      {"num_hidden_layers", C.num_hidden_layers, 12},
      {"num_attention_heads", C.num_attention_heads, 12},
      {"intermediate_size", C.intermediate_size, 3072},
      {"max_position_embeddings", C.max_position_embeddings, 512},
      {"type_vocab_size", C.type_vocab_size, 2},
      {"layer_norm_eps", C.layer_norm_eps, 1e-12},
      {"hidden_act", "gelu", "gelu"},
      {"position_embedding_type", "absolute", "absolute"},
      {"is_decoder", false, false},
      {"tie_word_embeddings", true, true}};
  static constexpr std::string_view heads[] = {"cls.", "classifier.", "qa_outputs.", "pooler.",
                                               "bert.pooler."};
  static StateDict own_names(StateDict state) { return bert_names(std::move(state)); }
};

}  // namespace detail

template <BertConfig C, bool Pooling>
struct Pretrained<BertModel<C, Pooling>> : detail::bert_files<C> {};
template <BertConfig C, int Labels>
struct Pretrained<BertForSequenceClassification<C, Labels>> : detail::bert_files<C> {};
template <BertConfig C>
struct Pretrained<BertForMaskedLM<C>> : detail::bert_files<C> {};

}  // namespace xla::models
