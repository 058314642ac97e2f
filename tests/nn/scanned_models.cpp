// SPDX-License-Identifier: Apache-2.0
// A model whose layers are a loop trains, scores and generates as the one whose layers are written
// out: the same names and bits, in every mode.
#include "support/decoder.hpp"
#include "support/small_bert.hpp"
#include "xla/loop/scan_layers.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/nn/transformer.hpp"
#include "xla/optim/clip.hpp"
#include "xla/run/trace/autocast.hpp"

namespace nn = xla::nn;

namespace {

constexpr nn::DecoderConfig deep(nn::DecoderConfig c, bool scans, bool checkpoints = false) {
  c.layers = 4;
  c.scan_layers = scans;
  c.checkpoint_layers = checkpoints;
  return c;
}

constexpr auto step = [](auto& model, auto& tokens, auto& next, auto& optimizer) {
  optimizer.zero_grad();
  const auto logits = model(tokens);
  const auto loss = cross_entropy(reshape(logits, {-1, logits.size(2)}), flatten(next));
  loss.backward();
  xla::optim::clip_grad_norm_(model, 1);
  optimizer.step();
  return loss;
};

/// Losses of some steps, what these leave, and what the model says then.
template <class Model>
test::snapshot results(bool eager, auto&& run, const auto& answers, const auto&... inputs) {
  const xla::eager_mode_guard mode(eager);
  xla::manual_seed(3);
  Model model;
  xla::optim::AdamW optimizer{model, {.lr = 0.01}};
  test::snapshot s;
  for (int i = 0; i < 4; ++i) s.add(run(model, inputs..., optimizer));
  s.append(test::state_of(model, optimizer));
  model.eval();
  answers(s, model, inputs...);
  return s;
}

template <class Loop, class Steps>
void check_loop(auto step, const auto& answers, const auto&... inputs) {
  Loop loop;
  Steps steps;
  CHECK(xla::load_state_dict(loop, xla::state_dict(steps)).empty());
  const auto expected = results<Steps>(true, step, answers, inputs...);
  CHECK(results<Loop>(true, step, answers, inputs...).difference(expected) == "");
  CHECK(results<Loop>(false, step, answers, inputs...).difference(expected) == "");
  auto compiled = xla::compile(step);
  CHECK(results<Loop>(false, compiled, answers, inputs...).difference(expected) == "");
  xla::optim::AdamW optimizer{loop, {.lr = 0.01}};
  CHECK_THAT(compiled.graph(xla::Stage::captured, loop, inputs..., optimizer),
             test::contains(" = loop("));
}

/// Texts scored with padding and through a cache.
constexpr auto score = []<nn::DecoderConfig C>(test::snapshot& s, const nn::Decoder<C>& model,
                                               const auto& tokens, const auto&) {
  s.add(model(tokens, tokens < 7));
  nn::KeyValueCache<C, 6, 2> cache;
  s.add(model(narrow(tokens, 1, 0, 5), cache));
  s.add(model.next_logits(narrow(tokens, 1, 5, 1), cache));
  s.add(cache);
};

template <nn::DecoderConfig Loop, nn::DecoderConfig Steps>
void check_decoder(auto step) {
  check_loop<nn::Decoder<Loop>, nn::Decoder<Steps>>(step, score, test::text_batch(2, 6, 0, 0),
                                                    test::text_batch(2, 6, 0, 1));
}

constexpr auto learn = [](const auto& output, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = mean(output * output);
  loss.backward();
  optimizer.step();
  return loss;
};
constexpr auto answer = [](test::snapshot& s, const auto& model, const auto& x, const auto&...) {
  s.add(model(x));
};

using EncoderLayer = nn::TransformerEncoderLayer<nn::TransformerEncoderLayerConfig{
    .d_model = 8, .nhead = 2, .dim_feedforward = 12, .batch_first = true, .norm_first = true}>;
template <bool Scans>
using Encoder = nn::TransformerEncoder<EncoderLayer, 3, nn::Identity,
                                       nn::TransformerEncoderConfig{.scan_layers = Scans}>;

constexpr auto encode = [](auto& model, auto& x, auto& padding, auto& optimizer) {
  return learn(model(x, {.src_key_padding_mask = padding, .is_causal = true}), optimizer);
};

template <bool Scans>
constexpr xla::models::BertConfig bert() {
  auto c = test::small_bert(true);
  c.scan_layers = Scans;
  return c;
}
template <bool Scans>
using Bert = xla::models::BertModel<bert<Scans>()>;
constexpr auto pool = [](auto& model, auto& ids, auto& mask, auto& optimizer) {
  return learn(model.pooler(model(ids, mask)), optimizer);
};

}  // namespace

TEST_CASE("layers as a loop that keep nothing for backward train as layers written out") {
  check_decoder<deep(test::tiny_llama, true, true), deep(test::tiny_llama, false, true)>(step);
}

TEST_CASE("so do layers with dropout, in autocast") {
  check_decoder<deep(test::tiny_gpt, true), deep(test::tiny_gpt, false)>(xla::autocast(step));
}

TEST_CASE("PyTorch's encoder, with padding and a causal mask") {
  check_loop<Encoder<true>, Encoder<false>>(encode, answer, test::numbers<float>({2, 5, 8}),
                                            test::numbers<float>({2, 5}, 3) > 1);
}

TEST_CASE("BERT, with padding") {
  const auto ids = test::text_batch(2, 6, 0, 0);
  check_loop<Bert<true>, Bert<false>>(pool, answer, ids, xla::cast<std::int64_t>(ids < 8));
}
