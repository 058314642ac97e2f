// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/mlp.hpp"
#include "support/modes.hpp"
#include "xla/nn/decoder.hpp"
#include "xla/optim/adamw.hpp"

namespace test {

inline constexpr xla::nn::DecoderConfig tiny_llama{.hidden = 16,
                                                   .layers = 2,
                                                   .heads = 4,
                                                   .kv_heads = 2,
                                                   .intermediate = 24,
                                                   .vocabulary = 11,
                                                   .rotary_theta = 10000};

inline constexpr xla::nn::DecoderConfig tiny_gpt{.hidden = 16,
                                                 .layers = 2,
                                                 .heads = 4,
                                                 .kv_heads = 4,
                                                 .intermediate = 64,
                                                 .vocabulary = 11,
                                                 .max_positions = 8,
                                                 .tied_head = true,
                                                 .bias = true,
                                                 .dropout = true,
                                                 .norm = xla::nn::DecoderNorm::layer,
                                                 .activation = xla::nn::DecoderActivation::gelu,
                                                 .init = xla::nn::DecoderInit::normal};

/// The text of tests/reference/decoder.py: character i of step s.
inline xla::Tensor<std::int64_t, 2> text_batch(std::int64_t batch, std::int64_t sequence,
                                               std::int64_t step, std::int64_t first) {
  std::vector<std::int64_t> v;
  for (std::int64_t i = first; i < first + batch * sequence; ++i)
    v.push_back((7 * i * i + 3 * i + 5 * step) % 11);
  return xla::from_blob(v.data(), {batch, sequence});
}

/// A training step on tokens (batch, sequence) and those that come next.
inline constexpr auto decoder_step = [](auto& model, auto& tokens, auto& next, auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(tokens);
  auto rows = reshape(logits, {-1, logits.size(2)});
  auto loss = cross_entropy(rows, flatten(next));
  loss.backward();
  optimizer.step();
  return loss;
};

}  // namespace test
