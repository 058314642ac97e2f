// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a config.json of GPT-2 or Llama into nn::DecoderConfig. model_config.hpp compares it with
// the decoder that a program was compiled for.

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>

#include "xla/ext/json_values.hpp"
#include "xla/nn/decoder.hpp"

namespace xla::ext {

namespace detail {

inline nn::DecoderConfig gpt2_config(const json_values& file) {
  if (!file.boolean("scale_attn_weights", true) ||
      file.boolean("scale_attn_by_inverse_layer_idx", false) ||
      file.boolean("add_cross_attention", false))
    file.refuse(
        "xla::nn::Decoder has no attention without scaling by the width of heads, and none across "
        "texts");
  const auto activation = file.text("activation_function", "gelu_new");
  const bool tanh = activation == "gelu_new" || activation == "gelu_pytorch_tanh";
  if (!tanh && activation != "gelu")
    file.refuse("activation_function is '" + activation +
                "', xla::nn::Decoder has gelu_new, gelu_pytorch_tanh and gelu");
  const int hidden = file.number("n_embd"), heads = file.number("n_head");
  if (hidden > std::numeric_limits<int>::max() / 4) file.refuse("n_embd is too large");
  return {.hidden = hidden,
          .layers = file.number("n_layer"),
          .heads = heads,
          .kv_heads = heads,
          .intermediate = file.contains("n_inner") ? file.number("n_inner") : 4 * hidden,
          .vocabulary = file.number("vocab_size"),
          .max_positions = file.number("n_positions"),
          .tied_head = file.boolean("tie_word_embeddings", true),
          .bias = true,
          .dropout = true,
          .norm = nn::DecoderNorm::layer,
          .norm_eps = file.positive("layer_norm_epsilon", 1e-5),
          .activation = tanh ? nn::DecoderActivation::gelu_tanh : nn::DecoderActivation::gelu,
          .init = nn::DecoderInit::normal};
}

/// The settings of rotary embeddings: since transformers 5 in one object.
inline RotaryScaling rotary_scaling(const json_values& file, const json_values& rope) {
  const auto type = rope.text("rope_type", rope.text("type", "default"));
  if (type == "default") return {};
  if (type != "linear" && type != "llama3")
    file.refuse("rope_type is '" + type + "', xla::nn::Decoder has default, linear and llama3");
  RotaryScaling scaling{.factor = rope.fraction("factor")};
  if (type == "llama3") {
    scaling.low_freq_factor = rope.fraction("low_freq_factor");
    scaling.high_freq_factor = rope.fraction("high_freq_factor");
    scaling.original_max_position_embeddings = rope.number("original_max_position_embeddings");
  }
  if (!scaling.valid())
    file.refuse(
        "the rotary embedding's factor is not above 0, or low_freq_factor not smaller than "
        "high_freq_factor");
  return scaling;
}

inline nn::DecoderConfig llama_config(const json_values& file) {
  const int hidden = file.number("hidden_size"), heads = file.number("num_attention_heads");
  if (hidden % heads != 0 || file.number("head_dim", hidden / heads) != hidden / heads)
    file.refuse(
        "num_attention_heads times head_dim is not hidden_size, as it is in "
        "xla::nn::Decoder");
  const bool bias = file.boolean("attention_bias", false);
  if (bias != file.boolean("mlp_bias", false))
    file.refuse(
        "attention_bias and mlp_bias differ; in xla::nn::Decoder all projections have a "
        "bias, or none");
  if (const auto activation = file.text("hidden_act", "silu"); activation != "silu")
    file.refuse("hidden_act is '" + activation + "', xla::nn::Decoder has silu");
  const bool new_names = file.contains("rope_parameters");
  const auto rope = file.object(new_names ? "rope_parameters" : "rope_scaling");
  return {.hidden = hidden,
          .layers = file.number("num_hidden_layers"),
          .heads = heads,
          .kv_heads = file.number("num_key_value_heads", heads),
          .intermediate = file.number("intermediate_size"),
          .vocabulary = file.number("vocab_size"),
          .rotary_theta = (new_names ? rope : file).positive("rope_theta", 10000),
          .rotary_scaling = rotary_scaling(file, rope),
          .tied_head = file.boolean("tie_word_embeddings", false),
          .bias = bias,
          .norm_eps = file.positive("rms_norm_eps", 1e-6)};
}

inline std::string config_text(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}
inline std::string config_text(nn::DecoderNorm norm) {
  return norm == nn::DecoderNorm::rms ? "rms" : "layer";
}
inline std::string config_text(nn::DecoderActivation activation) {
  constexpr std::array<const char*, 3> names{"swiglu", "gelu", "gelu_tanh"};
  return names[static_cast<std::size_t>(activation)];
}
inline std::string config_text(const RotaryScaling& s) {
  if (s.factor == 1) return "none";
  return config_text(s.factor) + " (" + config_text(s.low_freq_factor) + " to " +
         config_text(s.high_freq_factor) + " of " +
         config_text(s.original_max_position_embeddings) + ")";
}

}  // namespace detail

/// The decoder that the config.json in a Hugging Face folder describes, GPT-2 or Llama. Throws
/// `xla::io_error` if the file is missing or damaged, and for settings that nn::Decoder does not
/// have.
inline nn::DecoderConfig read_decoder_config(const std::string& folder) {
  const auto file = detail::json_values::read(folder + "/config.json");
  if (file.contains("quantization_config"))
    file.refuse(
        "quantization_config says that the weights are quantized; xla::nn::Decoder reads those of "
        "float32, float16 and bfloat16");
  const auto type = file.text("model_type");
  if (type == "gpt2") return detail::gpt2_config(file);
  if (type == "llama") return detail::llama_config(file);
  file.refuse("model_type is '" + type + "', expected gpt2 or llama");
}

/// How a file's decoder differs from the one that a program has compiled: "hidden 768 instead of
/// 512, …"; empty if they have the same weights and computation.
inline std::string decoder_difference(const nn::DecoderConfig& file,
                                      const nn::DecoderConfig& compiled) {
  std::string out;
  const auto compare = [&](const char* name, const auto& a, const auto& b) {
    if (!(a == b))
      out += (out.empty() ? "" : ", ") + std::string{name} + " " + detail::config_text(a) +
             " instead of " + detail::config_text(b);
  };
  compare("hidden", file.hidden, compiled.hidden);
  compare("layers", file.layers, compiled.layers);
  compare("heads", file.heads, compiled.heads);
  compare("kv_heads", file.kv_heads, compiled.kv_heads);
  compare("intermediate", file.intermediate, compiled.intermediate);
  compare("vocabulary", file.vocabulary, compiled.vocabulary);
  compare("max_positions", file.max_positions, compiled.max_positions);
  compare("rotary_theta", file.rotary_theta, compiled.rotary_theta);
  compare("rotary_scaling", file.rotary_scaling, compiled.rotary_scaling);
  compare("causal", file.causal, compiled.causal);
  compare("tied_head", file.tied_head, compiled.tied_head);
  compare("bias", file.bias, compiled.bias);
  compare("norm", file.norm, compiled.norm);
  compare("norm_eps", file.epsilon(), compiled.epsilon());
  compare("activation", file.activation, compiled.activation);
  return out;
}

}  // namespace xla::ext
