// SPDX-License-Identifier: Apache-2.0
// A decoder whose layers are a loop trains, scores and appends to a cache as one whose layers are
// called one by one: the same names and bits, in every mode. Other models: models/scanned.
#include "support/decoder.hpp"
#include "support/replicas.hpp"
#include "support/scanned.hpp"
#include "xla/parallel/optimizer_step.hpp"
#include "xla/run/trace/autocast.hpp"

namespace nn = xla::nn;

namespace {

constexpr nn::DecoderConfig deep(nn::DecoderConfig c, bool scans) {
  c.layers = 4;
  c.scan_layers = scans;
  return c;
}
template <bool Scans>
using Gpt = nn::Decoder<[] {
  auto c = deep(test::tiny_gpt, Scans);
  c.checkpoint_layers = true;
  return c;
}()>;
template <bool Scans, xla::dtype Element = xla::dtype::float32>
using Llama = nn::Decoder<[] {
  auto c = deep(test::tiny_llama, Scans);
  c.element = Element;
  return c;
}()>;

constexpr auto loss_of = [](auto& model, auto& tokens, auto& next) {
  const auto logits = model(tokens);
  return cross_entropy(reshape(logits, {-1, logits.size(2)}), flatten(next));
};
constexpr auto step = [](auto& model, auto& tokens, auto& next, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = loss_of(model, tokens, next);
  loss.backward();
  optimizer.step();
  return loss;
};
constexpr auto replicated_step = [](auto& model, auto& tokens, auto& next, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = loss_of(model, tokens, next);
  loss.backward();
  xla::reduce_gradients(optimizer);
  optimizer.step();
  return loss;
};

/// Texts scored with padding, and appended to a cache: a prompt, then a token.
constexpr auto score = []<nn::DecoderConfig C>(test::snapshot& s, const nn::Decoder<C>& model,
                                               const auto& tokens, const auto&) {
  s.add(model(tokens, tokens < 7));
  nn::KeyValueCache<C, 6, 2> cache;
  s.add(model(narrow(tokens, 1, 0, 5), cache));
  s.add(model.next_logits(narrow(tokens, 1, 5, 1), cache));
  s.add(cache);
};

const auto tokens = test::text_batch(2, 6, 0, 0), next = test::text_batch(2, 6, 0, 1);

}  // namespace

TEST_CASE("layers as a loop, with dropout, in autocast, that keep nothing for backward") {
  constexpr auto rounded = xla::autocast(step);
  const auto expected = test::check_scanned<Gpt<true>, Gpt<false>>(rounded, score, tokens, next);
  auto compiled = xla::compile(rounded);
  CHECK(test::train_and_answer<Gpt<true>>(false, compiled, score, tokens, next)
            .difference(expected) == "");
}

TEST_CASE("a compiled step appends to the caches of layers that are a loop") {
  const auto add = [](auto& model, auto& cache, auto& text) {
    model.eval();
    return model.next_logits(text, cache);
  };
  const auto run = [&](auto& model, auto& f) {
    nn::KeyValueCache<std::remove_cvref_t<decltype(model)>::config, 6, 2> cache;
    test::snapshot s;
    for (int i = 0; i < 3; ++i) {
      const auto token = narrow(tokens, 1, i, 1);
      s.add(f(model, cache, token));
    }
    s.add(cache);
    return s;
  };
  const xla::eager_mode_guard eager;
  Gpt<true> loop;
  Gpt<false> steps;
  xla::load_state_dict(loop, xla::state_dict(steps));
  auto compiled = xla::compile(add);
  CHECK(run(loop, compiled).difference(run(steps, add)) == "");
}

TEST_CASE("on replicas") {
  test::replicate(2, [](int replica) {
    const auto own = test::text_batch(2, 6, replica, 0),
               target = test::text_batch(2, 6, replica, 1);
    const auto expected =
        test::train_and_answer<Llama<false>>(true, replicated_step, score, own, target);
    for (const bool eager : {true, false})
      if (test::train_and_answer<Llama<true>>(eager, replicated_step, score, own, target)
              .difference(expected) != "")
        throw std::runtime_error("the loop has other numbers on replicas");
  });
}

TEST_CASE("weights of bfloat16") {
  const auto answer = [](const auto& model, bool eager) {
    const xla::eager_mode_guard mode(eager);
    test::snapshot s;
    score(s, model, tokens, next);
    return s;
  };
  constexpr auto bfloat16 = xla::dtype::bfloat16;
  xla::eager_mode(true);
  const Llama<false, bfloat16> steps;
  Llama<true, bfloat16> loop;
  xla::load_state_dict(loop, xla::state_dict(steps));
  const auto expected = answer(steps, true);
  CHECK(answer(loop, true).difference(expected) == "");
  CHECK(answer(loop, false).difference(expected) == "");
}
