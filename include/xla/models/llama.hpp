// SPDX-License-Identifier: Apache-2.0
#pragma once

// Llama's networks as nn::Decoder at their sizes. Weights are loaded by ext/pretrained.hpp.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/models/names.hpp"
#include "xla/nn/decoder.hpp"

namespace xla::models {

namespace detail {
/// The configuration that all of Llama's networks share.
constexpr nn::DecoderConfig llama_config(nn::DecoderConfig sizes) {
  sizes.norm_eps = 1e-5;
  return sizes;
}
/// Of Llama 3.1 and 3.2.
constexpr nn::DecoderConfig llama_3_config(nn::DecoderConfig sizes, double factor) {
  sizes.kv_heads = 8;
  sizes.vocabulary = 128256;
  sizes.rotary_theta = 500000;
  sizes.rotary_scaling = {.factor = factor, .original_max_position_embeddings = 8192};
  return llama_config(sizes);
}
}  // namespace detail

/// Llama 2 of 7 billion parameters is nn::Decoder<llama_2_7b>, and so on. Touvron et al. (2023);
/// Grattafiori et al. (2024).
inline constexpr nn::DecoderConfig llama_2_7b = detail::llama_config({.hidden = 4096,
                                                                      .layers = 32,
                                                                      .heads = 32,
                                                                      .kv_heads = 32,
                                                                      .intermediate = 11008,
                                                                      .vocabulary = 32000,
                                                                      .rotary_theta = 10000});
inline constexpr nn::DecoderConfig llama_3_1_8b =
    detail::llama_3_config({.hidden = 4096, .layers = 32, .heads = 32, .intermediate = 14336}, 8);
inline constexpr nn::DecoderConfig llama_3_2_1b = detail::llama_3_config(
    {.hidden = 2048, .layers = 16, .heads = 32, .intermediate = 8192, .tied_head = true}, 32);
inline constexpr nn::DecoderConfig llama_3_2_3b = detail::llama_3_config(
    {.hidden = 3072, .layers = 28, .heads = 24, .intermediate = 8192, .tied_head = true}, 32);

/// Smaller networks of the same structure: TinyLlama of 1.1 billion parameters, and SmolLM2 of 135
/// and 362 million. Zhang et al. (2024); Ben Allal et al. (2025).
inline constexpr nn::DecoderConfig tinyllama_1_1b = detail::llama_config({.hidden = 2048,
                                                                          .layers = 22,
                                                                          .heads = 32,
                                                                          .kv_heads = 4,
                                                                          .intermediate = 5632,
                                                                          .vocabulary = 32000,
                                                                          .rotary_theta = 10000});
inline constexpr nn::DecoderConfig smollm2_135m = detail::llama_config({.hidden = 576,
                                                                        .layers = 30,
                                                                        .heads = 9,
                                                                        .kv_heads = 3,
                                                                        .intermediate = 1536,
                                                                        .vocabulary = 49152,
                                                                        .rotary_theta = 100000,
                                                                        .tied_head = true});
inline constexpr nn::DecoderConfig smollm2_360m = detail::llama_config({.hidden = 960,
                                                                        .layers = 32,
                                                                        .heads = 15,
                                                                        .kv_heads = 5,
                                                                        .intermediate = 2560,
                                                                        .vocabulary = 49152,
                                                                        .rotary_theta = 100000,
                                                                        .tied_head = true});

namespace detail {
inline constexpr std::string_view llama_prefix = "model.", llama_head = "lm_head.weight";
}  // namespace detail

/// Renames weights of Hugging Face's LlamaForCausalLM or LlamaModel to nn::Decoder's names. The
/// head is dropped if it is the embedding's weight, as are the tables of frequencies in old files.
template <class = void>
StateDict llama_from_hugging_face(StateDict state, bool tied_head = false) {
  std::erase_if(
      state, [](const NamedArray& a) { return a.name.ends_with(".rotary_emb.inv_freq"); });
  for (auto& a : state)
    if (a.name.starts_with(detail::llama_prefix)) a.name.erase(0, detail::llama_prefix.size());
  if (tied_head)
    detail::join_tied(state, detail::llama_head, "embed_tokens.weight", "llama_from_hugging_face");
  return state;
}

/// The reverse: converts the state_dict() of an nn::Decoder such as llama_3_2_1b for
/// LlamaForCausalLM.
template <class = void>
StateDict llama_to_hugging_face(StateDict state) {
  for (auto& a : state)
    if (a.name != detail::llama_head) a.name.insert(0, detail::llama_prefix);
  return state;
}

}  // namespace xla::models
