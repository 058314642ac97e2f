// SPDX-License-Identifier: Apache-2.0
#include "support/decoder.hpp"
#include "support/steps.hpp"
#include "xla/xla.hpp"

namespace nn = xla::nn;
using test::mode;

TEST_CASE("a checkpointed decoder with dropout gives the same numbers") {
  constexpr auto checkpointed = [] {
    auto c = test::tiny_gpt;
    c.checkpoint_layers = true;
    return c;
  }();
  auto losses = []<nn::DecoderConfig C, mode M>() {
    const xla::eager_mode_guard as_told(M == mode::eager);
    xla::manual_seed(5);
    nn::Decoder<C> model;
    xla::optim::AdamW optimizer{model, {.lr = 0.01}};
    auto compiled = xla::compile(test::decoder_step);
    test::snapshot s;
    for (int i = 0; i < 2; ++i) {
      auto tokens = test::text_batch(2, 6, i, 0), next = test::text_batch(2, 6, i, 1);
      xla::Tensor<float, 0> loss;
      if constexpr (M == mode::compiled) loss = compiled(model, tokens, next, optimizer);
      else loss = test::decoder_step(model, tokens, next, optimizer);
      s.add(loss);
    }
    s.add(model);
    return s;
  };
  const auto want = losses.operator()<test::tiny_gpt, mode::eager>();
  CHECK(losses.operator()<checkpointed, mode::eager>().difference(want) == "");
  CHECK(losses.operator()<checkpointed, mode::traced>().difference(want) == "");
  CHECK(losses.operator()<checkpointed, mode::compiled>().difference(want) == "");
}
