// SPDX-License-Identifier: Apache-2.0
// The benchmark's decoder against PyTorch; bench/peers/decoder_reference.py writes what it
// computes.
#include "data/decoder_small.inc"
#include "../../bench/decoder_task.hpp"
#include "support/stored.hpp"

namespace nn = xla::nn;

TEST_CASE("the decoder small has PyTorch's logits and first 6 losses") {
  const xla::eager_mode_guard eager;
  xla::set_num_threads(2);
  nn::Decoder<nn::small_decoder> model;
  bench::set_decoder_weights(model);
  const auto text = bench::make_text(6, 4, 128, nn::small_decoder.vocabulary);
  xla::no_grad([&] {
    std::vector<float> some;
    const auto logits = model(text[0].first).to_vector();
    for (std::size_t i = 0; i < logits.size(); i += reference::small_stride)
      some.push_back(logits[i]);
    test::check_stored(xla::from_blob(some.data(), {std::int64_t(some.size())}),
                       reference::small_logits, 1e-4);
  });
  nn::CrossEntropyLoss loss_fn;
  xla::optim::AdamW optimizer{model, {.lr = 1e-4}};
  std::vector<float> losses;
  for (const auto& [tokens, next] : text)
    losses.push_back(bench::decoder_step(model, tokens, next, loss_fn, optimizer).item());
  test::check_stored(xla::from_blob(losses.data(), {6}), reference::small_losses, 1e-4);
}
