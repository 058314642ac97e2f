// SPDX-License-Identifier: Apache-2.0
// Decoders against what PyTorch computes from the same weights and text (tests/reference).
#include "data/decoder.inc"
#include "support/decoder.hpp"
#include "support/stored.hpp"

namespace nn = xla::nn;

namespace {

/// Parameter number n holds numbers with seed n, over 16; scales of norms are near 1.
template <class Model>
void set_weights(Model& model) {
  std::uint64_t seed = 0;
  xla::named_parameters(model, [&]<class P>(const std::string& name, P& p) {
    const float near = name.ends_with("norm.weight") ? 1 : 0;
    if constexpr (P::rank == 1) p.copy_(test::numbers<float>({p.size(0)}, seed) / 16 + near);
    else p.copy_(test::numbers<float>({p.size(0), p.size(1)}, seed) / 16 + near);
    ++seed;
  });
}

template <nn::DecoderConfig C>
void check(const std::vector<double>& logits, const std::vector<double>& losses) {
  const xla::eager_mode_guard eager;
  nn::Decoder<C> model;
  if constexpr (C.dropout) model.drop.p = 0;
  set_weights(model);
  test::check_stored(model(test::text_batch(2, 6, 0, 0)), logits, 1e-5);
  xla::optim::AdamW optimizer{model, {.lr = 0.01}};
  for (std::int64_t step = 0; step < 5; ++step) {
    const auto tokens = test::text_batch(2, 6, step, 0), next = test::text_batch(2, 6, step, 1);
    const auto loss = test::decoder_step(model, tokens, next, optimizer);
    test::check_stored(loss, {losses[static_cast<std::size_t>(step)]}, 1e-5);
  }
}

}  // namespace

TEST_CASE("a llama-like decoder gives PyTorch's logits and losses") {
  check<test::tiny_llama>(reference::llama_logits, reference::llama_losses);
}

TEST_CASE("a GPT-like decoder gives PyTorch's logits and losses") {
  check<test::tiny_gpt>(reference::gpt_logits, reference::gpt_losses);
}
