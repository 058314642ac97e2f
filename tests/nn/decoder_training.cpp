// SPDX-License-Identifier: Apache-2.0
#include "support/decoder.hpp"

namespace nn = xla::nn;

#ifndef XLA_TEST_DECODER
#define XLA_TEST_DECODER test::tiny_llama
#endif

namespace {

/// Losses of some steps with two sizes of batches, then everything that the steps left.
template <nn::DecoderConfig C>
test::snapshot train(auto run, int steps) {
  xla::manual_seed(3);
  nn::Decoder<C> model;
  xla::optim::AdamW optimizer{model, {.lr = 0.01}};
  test::snapshot s;
  float first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    const std::int64_t n = i % 4 == 2 ? 5 : 8, b = i % 4 == 2 ? 1 : 3;
    const auto tokens = test::text_batch(b, n, 0, i % 2),
               next = test::text_batch(b, n, 0, i % 2 + 1);
    const auto loss = run(model, tokens, next, optimizer);
    last = loss.item();
    if (i == 0) first = last;
    s.add(loss);
  }
  if (steps > 20) CHECK(last < first / 2);
  s.append(test::state_of(model, optimizer));
  return s;
}

template <nn::DecoderConfig C>
void check_training() {
  const xla::eager_mode_guard guard;
  const auto eager = train<C>(test::decoder_step, 60);
  auto compiled = xla::compile(test::decoder_step);
  CHECK(train<C>([&](auto&... a) { return compiled(a...); }, 60).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train<C>(test::decoder_step, 60).difference(eager) == "");
}

}  // namespace

TEST_CASE("a decoder learns a text, the same in every mode") { check_training<XLA_TEST_DECODER>(); }
