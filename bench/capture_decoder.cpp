// SPDX-License-Identifier: Apache-2.0
// The second source that capture.py compiles: the training step of a decoder, with AdamW and
// clipped gradients (layers.hpp).

#include <xla/xla.hpp>

#include "layers.hpp"

namespace {

constexpr xla::nn::DecoderConfig config{.hidden = 32,
                                        .layers = LAYERS,
                                        .heads = 4,
                                        .kv_heads = 2,
                                        .intermediate = 64,
                                        .vocabulary = 64,
                                        .scan_layers = SCAN_LAYERS};

constexpr auto decoder_step = [](auto& model, auto& tokens, auto& next, auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(tokens);
  auto loss = xla::cross_entropy(xla::reshape(logits, {-1, config.vocabulary}), next);
  loss.backward();
  xla::optim::clip_grad_norm_(model, 1);
  optimizer.step();
  return loss;
};

}  // namespace

int main() {
  xla::eager_mode(true);
  xla::manual_seed(1);
  xla::nn::Decoder<config> model;
  xla::optim::AdamW optimizer{model, {.lr = 1e-3}};
  auto tokens = xla::randint(0, config.vocabulary, {2, 8});
  auto next = xla::randint(0, config.vocabulary, {16});
  auto step = xla::compile(decoder_step, {.name = "decoder"});
  const float first = step(model, tokens, next, optimizer).item();
  for (int i = 0; i < 20; ++i) step(model, tokens, next, optimizer);
  const float last = step(model, tokens, next, optimizer).item();
  return last < first ? 0 : 1;
}
