// SPDX-License-Identifier: Apache-2.0
#pragma once

// The decoders that the program can train, each compiled in a file of its own.

#include <cstdint>
#include <string>

#include <xla/nn/decoder.hpp>

#include "options.hpp"

namespace nn = xla::nn;

/// Layers are compiled one by one, all alike; the tests' build has fewer.
#ifdef XLA_EXAMPLE_TESTED
inline constexpr std::int64_t layers = 2;
#else
inline constexpr std::int64_t layers = 4;
#endif

/// nanoGPT's model for a processor, on bytes.
inline constexpr auto char_config = [] {
  auto c = nn::char_decoder;
  c.layers = layers;
  c.vocabulary = 256;
  return c;
}();

/// Llama's kind at the same size: RMSNorm, rotary positions, shared key heads, SwiGLU.
inline constexpr nn::DecoderConfig llama_config{.hidden = 128,
                                                .layers = layers,
                                                .heads = 4,
                                                .kv_heads = 2,
                                                .intermediate = 344,
                                                .vocabulary = 256,
                                                .rotary_theta = 10000,
                                                .tied_head = true,
                                                .init = nn::DecoderInit::normal};

/// Whether a build has it in autocast too; the tests' build has one that does.
template <nn::DecoderConfig C>
#ifdef XLA_EXAMPLE_TESTED
inline constexpr bool has_autocast = C.norm == nn::DecoderNorm::layer;
#else
inline constexpr bool has_autocast = true;
#endif

/// Trains a decoder as the options say, to the end. Each configuration is compiled in a file of its
/// own.
template <nn::DecoderConfig C>
void run(const Options& options, const std::string& text);

extern template void run<char_config>(const Options&, const std::string&);
extern template void run<llama_config>(const Options&, const std::string&);
extern template void run<nn::small_decoder>(const Options&, const std::string&);
extern template void run<nn::seed_decoder>(const Options&, const std::string&);
