// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xla/ext/tokenizer.hpp>
#include <xla/models/gpt2.hpp>
#include <xla/models/llama.hpp>

#include "options.hpp"

/// Decoders by the names that XLA_EXAMPLE_DECODERS lists.
namespace decoders {
using xla::nn::DecoderConfig;
using namespace xla::models;

/// Those of the tests.
inline constexpr DecoderConfig tiny_gpt2{.hidden = 16,
                                         .layers = 2,
                                         .heads = 2,
                                         .kv_heads = 2,
                                         .intermediate = 64,
                                         .vocabulary = 377,
                                         .max_positions = 64,
                                         .tied_head = true,
                                         .bias = true,
                                         .norm = xla::nn::DecoderNorm::layer,
                                         .activation = xla::nn::DecoderActivation::gelu_tanh};
inline constexpr DecoderConfig tiny_llama{.hidden = 16,
                                          .layers = 2,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .intermediate = 32,
                                          .vocabulary = 420,
                                          .rotary_theta = 10000,
                                          .norm_eps = 1e-5};

struct Known {
  const char* name;
  DecoderConfig config;
};
/// All that have a name, whether this program was built with them or not.
inline constexpr Known known[] = {
    {"gpt2", gpt2},
    {"distilgpt2", distilgpt2},
    {"gpt2_medium", gpt2_medium},
    {"gpt2_large", gpt2_large},
    {"gpt2_xl", gpt2_xl},
    {"llama_2_7b", llama_2_7b},
    {"llama_3_1_8b", llama_3_1_8b},
    {"llama_3_2_1b", llama_3_2_1b},
    {"llama_3_2_3b", llama_3_2_3b},
    {"tinyllama_1_1b", tinyllama_1_1b},
    {"smollm2_135m", smollm2_135m},
    {"smollm2_360m", smollm2_360m},
    {"tiny_gpt2", tiny_gpt2},
    {"tiny_llama", tiny_llama},
};
}  // namespace decoders

/// Loads a decoder's weights and writes as the options say. Each configuration is compiled in a
/// file of its own.
template <xla::nn::DecoderConfig C>
void run(const Options& options, const xla::ext::Tokenizer& tokenizer);
