// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "support/decoder.hpp"
#include "support/sanitized.hpp"
#include "xla/nn/generate.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/run/trace/autocast.hpp"

namespace nn = xla::nn;
using test::check_equal;

namespace {

constexpr int text = 8;

/// A decoder whose weights are no start: its logits differ by more than rounding.
template <nn::DecoderConfig C>
nn::Decoder<C> make_model() {
  xla::manual_seed(5);
  nn::Decoder<C> model;
  xla::named_parameters(
      model, [](const std::string&, auto& p) { p.copy_(p + 0.3f * xla::randn_like(p)); });
  model.eval();
  return model;
}

auto append = [](auto& model, auto& tokens, auto& cache) {
  model.eval();
  return model(tokens, cache);
};

/// The logits of tokens that go into a cache in parts of the given lengths.
template <class Run, class Model, class Cache>
std::vector<float> in_parts(Run& run, Model& model, Cache& cache,
                            const xla::Tensor<std::int64_t, 2>& tokens,
                            const std::vector<std::int64_t>& lengths) {
  std::vector<xla::Tensor<float, 3>> parts;
  std::int64_t at = 0;
  for (std::int64_t n : lengths) {
    auto part = narrow(tokens, 1, at, n);
    parts.push_back(run(model, part, cache));
    at += n;
    CHECK(cache.position.item() == at);
  }
  return xla::detail::concat(parts.data(), static_cast<int>(parts.size()), 1, xla::here())
      .to_vector();
}

template <nn::DecoderConfig C, int Length, int Batch>
void check_cached() {
  const xla::eager_mode_guard guard;
  auto model = make_model<C>();
  const auto tokens = test::text_batch(Batch, text, 0, 0);
  const auto whole = model(tokens).to_vector();
  nn::KeyValueCache<C, Length, Batch> cache;
  auto compiled = xla::compile(append);
  double worst = 0;
  std::vector<float> first;
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{8}, {1, 1, 1, 1, 1, 1, 1, 1}, {3, 1, 4}, {5, 1, 1, 1}}) {
    for (int mode = 0; mode < 3; ++mode) {
      xla::eager_mode(mode == 0);
      cache.reset();
      const auto got = mode == 2 ? in_parts(compiled, model, cache, tokens, lengths)
                                 : in_parts(append, model, cache, tokens, lengths);
      REQUIRE(got.size() == whole.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        worst = std::max<double>(worst, std::abs(got[i] - whole[i]));
      if (mode == 0) first = got;
      else CHECK(got == first);
    }
  }
  // Products with up to 4 rows sum in an order of their own.
  CHECK(worst <= 1e-5);
}

}  // namespace

TEST_CASE("a llama-like decoder with a cache gives the logits of the whole text") {
  check_cached<test::tiny_llama, 12, 2>();
}

TEST_CASE("a GPT-like decoder gives them with a cache that the text fills") {
  check_cached<test::tiny_gpt, text, 1>();
}

TEST_CASE("tokens for which a cache has no place are refused in every mode, and change nothing") {
  const xla::eager_mode_guard guard;
  auto model = make_model<test::tiny_llama>();
  nn::KeyValueCache<test::tiny_llama, 12, 2> cache;
  auto compiled = xla::compile(append);
  auto begun = test::text_batch(2, 11, 0, 0), tokens = test::text_batch(2, 3, 0, 0);
  (void)append(model, begun, cache);
  test::snapshot before;
  before.add(cache);
  auto check = [&](auto run) {
    CHECK_THROWS_AS(run().to_vector(), xla::index_error);
    CHECK_THROWS_WITH(run().to_vector(),
                      test::contains("KeyValueCache: the cache is full, reset() empties it: index "
                                     "12 at position 1 is outside [0, 12)"));
    test::snapshot after;
    after.add(cache);
    CHECK(after.difference(before) == "");
  };
  check([&] { return compiled(model, tokens, cache); });
  for (bool eager : {true, false}) {
    xla::eager_mode(eager);
    check([&] { return append(model, tokens, cache); });
  }
  auto unknown = xla::full<std::int64_t>({2, 1}, 11), one = test::text_batch(1, 1, 0, 0);
  auto leaves_cache = [&](auto run, const std::string& words) {
    CHECK_THROWS_WITH(run(), test::contains(words));
    test::snapshot after;
    after.add(cache);
    CHECK(after.difference(before) == "");
  };
  xla::eager_mode(true);
  leaves_cache([&] { return append(model, unknown, cache); }, "embedding: index 11");
  leaves_cache([&] { return compiled(model, unknown, cache); }, "embedding: index 11");
  leaves_cache([&] { return append(model, one, cache); },
               "KeyValueCache: a tensor of shape (1, 1), whose axis 0 has to be 2");
  CHECK_THROWS_AS(compiled(model, one, cache), xla::shape_error);
}

TEST_CASE("a step writes the cache where it is") {
  const xla::eager_mode_guard guard;
  auto model = make_model<test::tiny_gpt>();
  nn::KeyValueCache<test::tiny_gpt, text> cache;
  auto compiled = xla::compile(append);
  auto token = test::text_batch(1, 1, 0, 0);
  for (int mode = 0; mode < 3; ++mode) {
    xla::eager_mode(mode == 0);
    cache.reset();
    const float* const keys = cache.layers[1].keys.data();
    for (int i = 0; i < 4; ++i) {
      const auto logits = mode == 2 ? compiled(model, token, cache) : append(model, token, cache);
      CHECK(!logits.requires_grad());
      CHECK(logits.to_vector().size() == 11);
      CHECK(cache.layers[1].keys.data() == keys);
    }
  }
}

TEST_CASE("generation takes the most probable token, or draws one, the same from the same seed") {
  const xla::eager_mode_guard eager;
  auto model = make_model<test::tiny_llama>();
  nn::KeyValueCache<test::tiny_llama, 12, 2> cache;
  const auto prompt = test::text_batch(2, 3, 0, 0);
  const auto greedy = nn::generate(model, cache, prompt, 6, 0);
  auto all = prompt;
  for (int i = 0; i < 6; ++i)
    all = xla::cat<1>(all, unsqueeze(argmax(select(model(all), 1, -1)), 1));
  CHECK(greedy.to_vector() == narrow(all, 1, 3, 6).to_vector());
  auto draw = [&](std::uint64_t seed) {
    cache.reset();
    xla::manual_seed(seed);
    return nn::generate(model, cache, prompt, 6, 5).to_vector();
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
  cache.reset();
  CHECK(nn::generate<1>(model, cache, prompt, 6, 5).to_vector() == greedy.to_vector());
  CHECK(nn::generate(model, cache, prompt, 0).sizes() == test::sizes_t{2, 0});
  for (const nn::Sampling how : {nn::Sampling{.temperature = 0}, {.top_k = 1}, {.top_p = 1e-6}}) {
    cache.reset();
    CHECK(nn::generate(model, cache, prompt, 6, how).to_vector() == greedy.to_vector());
  }
}

TEST_CASE("a text ends after its end token, and generation with the last text") {
  const xla::eager_mode_guard eager;
  auto model = make_model<test::tiny_llama>();
  nn::KeyValueCache<test::tiny_llama, 12, 2> cache;
  const auto prompt = test::text_batch(2, 3, 0, 0);
  auto write = [&](std::int64_t eos) {
    cache.reset();
    xla::manual_seed(1);
    return nn::generate(model, cache, prompt, 6,
                        {.temperature = 5, .eos_token = eos, .pad_token = 99})
        .to_vector();
  };
  const auto all = write(-1);
  const auto end = xla::get_rng_state();
  for (const std::int64_t eos : {all[1], all[8], std::int64_t{1000}}) {
    auto expected = all;
    std::int64_t longest = 0;
    for (std::size_t row = 0; row < 2; ++row) {
      const auto from = expected.begin() + 6 * static_cast<std::ptrdiff_t>(row), to = from + 6;
      const auto last = std::find(from, to, eos);
      longest = std::max<std::int64_t>(longest, last - from + (last != to));
      if (last != to) std::fill(last + 1, to, 99);
    }
    CHECK(write(eos) == expected);
    CHECK(cache.position.item() == 3 + longest - 1);
    CHECK(xla::get_rng_state() == end);
  }
}

TEST_CASE("prompts of several lengths are continued as each alone") {
  const xla::eager_mode_guard eager;
  auto model = make_model<test::tiny_gpt>();
  nn::KeyValueCache<test::tiny_gpt, text> alone;
  nn::KeyValueCache<test::tiny_gpt, text, 3> cache;
  const auto prompts = xla::tensor<std::int64_t>({{0, 0, 7}, {0, 4, 2}, {5, 1, 3}});
  const auto lengths = xla::tensor<std::int64_t>({1, 2, 3});
  const auto all = nn::generate(model, cache, prompts, lengths, 5, {.temperature = 0});
  for (int i = 0; i < 3; ++i) {
    alone.reset();
    const auto own = narrow(narrow(prompts, 0, i, 1), 1, 2 - i, 1 + i);
    CHECK(nn::generate(model, alone, own, 5, 0).to_vector() == narrow(all, 0, i, 1).to_vector());
  }
  CHECK_THROWS_WITH(nn::generate(model, cache, prompts, lengths, 1),
                    test::contains("begin an empty cache: reset() it before"));
  cache.reset();
  CHECK_THROWS_WITH(nn::generate(model, cache, prompts, lengths + 1, 1),
                    test::contains("a prompt of length 4 in a row of 3 tokens"));
  CHECK_THROWS_WITH(nn::generate(model, cache, prompts, xla::tensor<std::int64_t>({1, 2}), 1),
                    test::contains("2 lengths for 3 prompts"));
}

TEST_CASE("generation drops nothing, also from a model in training") {
  const xla::eager_mode_guard eager;
  auto model = make_model<test::tiny_gpt>();
  nn::KeyValueCache<test::tiny_gpt, text> cache;
  auto draw = [&] {
    cache.reset();
    return nn::generate(model, cache, test::text_batch(1, 2, 0, 0), 6, 0).to_vector();
  };
  const auto tokens = draw();
  model.train();
  CHECK(draw() == tokens);
  CHECK(model.is_training());
  CHECK_THROWS_AS(nn::generate(model, cache, test::text_batch(1, 2, 0, 0), 1), xla::index_error);
}

namespace {

/// How many tokens are drawn, and how far their shares may be from the probabilities.
constexpr std::int64_t draws = test::sanitized ? 4000 : 40000;
constexpr double off = test::sanitized ? 0.03 : 0.01;

}  // namespace

TEST_CASE("tokens are drawn as often as their logits say") {
  const xla::eager_mode_guard eager;
  const auto row = xla::tensor<float>({0, 1, -1, 2});
  const auto logits = expand(row, {draws, 4});
  auto shares = [&](double temperature, std::int64_t k) {
    std::vector<double> n(4);
    for (std::int64_t i : nn::sample(logits, temperature, k).to_vector())
      n[static_cast<std::size_t>(i)] += 1.0 / draws;
    return n;
  };
  xla::manual_seed(3);
  for (double temperature : {1.0, 0.5, 3.0}) {
    const auto seen = shares(temperature, 0);
    const auto expected = softmax(row / temperature).to_vector();
    for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(seen[i] - expected[i]) < off);
  }
  const auto two = shares(1, 2);
  const double last = 1 / (1 + std::exp(-1.0));
  CHECK(two[0] + two[2] == 0);
  CHECK(std::abs(two[3] - last) < off);
  CHECK(shares(0, 0)[3] > 0.9999);
  CHECK(shares(1, 1)[3] > 0.9999);

  // top_k as an input draws the same.
  xla::manual_seed(4);
  const auto some = nn::sample(logits, 1, 2).to_vector();
  xla::manual_seed(4);
  CHECK(nn::sample(logits, 1, xla::Scalar(2)).to_vector() == some);
}

TEST_CASE("tokens are drawn from the most probable ones that reach top_p") {
  const xla::eager_mode_guard eager;
  // Probabilities 0.5, 0.25, 0.15, 0.1, in another order.
  const auto row = log(xla::tensor<float>({0.15f, 0.5f, 0.1f, 0.25f}));
  const auto logits = expand(row, {draws, 4});
  const auto check = [&](const nn::Sampling& how, std::vector<double> expected) {
    INFO(how.temperature << " " << how.top_k << " " << how.top_p);
    xla::manual_seed(7);
    std::vector<double> seen(4), same(4);
    for (std::int64_t i : nn::sample(logits, how).to_vector())
      seen[static_cast<std::size_t>(i)] += 1.0 / draws;
    xla::manual_seed(7);
    for (std::int64_t i :
         nn::sample(logits, how.temperature, xla::Scalar(how.top_k), how.top_p).to_vector())
      same[static_cast<std::size_t>(i)] += 1.0 / draws;
    CHECK(seen == same);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(std::abs(seen[i] - expected[i]) < off);
      CHECK((seen[i] > 0) == (expected[i] > 0));
    }
  };
  check({}, {0.15, 0.5, 0.1, 0.25});
  check({.top_p = 0.95}, {0.15, 0.5, 0.1, 0.25});
  check({.top_p = 0.8}, {0.15 / 0.9, 0.5 / 0.9, 0, 0.25 / 0.9});
  check({.top_p = 0.6}, {0, 2.0 / 3, 0, 1.0 / 3});
  check({.top_p = 0.4}, {0, 1, 0, 0});
  check({.top_p = 0}, {0, 1, 0, 0});
  check({.temperature = 0, .top_p = 0.9}, {0, 1, 0, 0});
  // First top_k, and of that top_p: 0.5 / 0.9 and 0.25 / 0.9 make 0.83.
  check({.top_k = 3, .top_p = 0.83}, {0, 2.0 / 3, 0, 1.0 / 3});
  check({.top_k = 3}, {0.15 / 0.9, 0.5 / 0.9, 0, 0.25 / 0.9});
  check({.top_k = 9}, {0.15, 0.5, 0.1, 0.25});
  // At temperature 1/2 they are 0.725, 0.181, 0.065, 0.029.
  check({.temperature = 0.5, .top_p = 0.7}, {0, 1, 0, 0});
  check({.temperature = 0.5, .top_p = 0.9}, {0, 0.8, 0, 0.2});
  CHECK_THROWS_WITH(nn::sample(logits, {.top_p = 1.5}), test::contains("top_p is 1.5"));
  CHECK_THROWS_WITH(nn::sample(logits, {.temperature = -1}), test::contains("temperature is -1"));
  CHECK_THROWS_WITH(nn::sample(logits, 1, 0, 1.5), test::contains("top_p is from 0 to 1"));
  CHECK_THROWS_WITH(nn::sample(logits, -1, 0, 1), test::contains("temperature and top_k"));
  CHECK_THROWS_WITH(nn::sample(logits, 1, -2, 1), test::contains("temperature and top_k"));
}

TEST_CASE("drawing is the same in every mode") {
  auto draw = [](auto& logits, auto& temperature, auto& top_k, auto& top_p) {
    const auto any = nn::sample(logits, temperature), some = nn::sample(logits, temperature, 3);
    const auto likely = nn::sample(logits, temperature, top_k, top_p);
    return std::tuple(any, some, likely, nn::sample(logits, temperature, top_k));
  };
  test::check_modes(draw, test::numbers<float>({13, 7}), xla::Scalar(0.8), xla::Scalar(2),
                    xla::Scalar(0.9));
  test::check_modes(draw, test::numbers<float>({1, 3200}), xla::Scalar(0), xla::Scalar(3200),
                    xla::Scalar(0.5));
}

TEST_CASE("a decoder in bfloat16 reads what was trained in float and writes text, in every mode") {
  const xla::eager_mode_guard guard;
  static constexpr auto config = [] {
    nn::DecoderConfig c = test::tiny_llama;
    c.element = xla::dtype::bfloat16;
    c.dropout = true;  // dropped in training, which is compiled as well
    return c;
  }();
  auto trained = make_model<test::tiny_llama>();
  nn::Decoder<config> model;
  xla::load_state_dict(model, xla::state_dict(trained));
  model.eval();
  const auto tokens = test::text_batch(1, text, 0, 0);
  const auto whole = trained(tokens).to_vector();
  const auto close = [&](const xla::Tensor<xla::bfloat16, 3>& logits) {
    test::check_equal(xla::cast<float>(logits), {1, text, 11}, whole, 0.12);
  };
  const auto logits_of = [&] { return xla::cast<float>(model(tokens)).to_vector(); };
  const auto in_evaluation = logits_of();
  model.train();
  CHECK(logits_of() != in_evaluation);
  model.eval();
  CHECK(logits_of() == in_evaluation);
  close(model(tokens));

  nn::KeyValueCache<config, 20> cache;
  CHECK(sizeof(*cache.layers[0].keys.data()) == 2);
  auto compiled = xla::compile(append);
  std::vector<xla::bfloat16> first;
  for (int mode = 0; mode < 3; ++mode) {
    xla::eager_mode(mode == 0);
    cache.reset();
    const auto logits = mode == 2 ? compiled(model, tokens, cache) : append(model, tokens, cache);
    close(logits);
    const auto bits = logits.to_vector();
    if (mode == 0) first = bits;
    CHECK(std::memcmp(bits.data(), first.data(), 2 * first.size()) == 0);
  }
  xla::eager_mode(true);
  cache.reset();
  auto prompt = test::text_batch(1, 3, 0, 0);
  const auto greedy = generate(model, cache, prompt, 6, {.temperature = 0});
  cache.reset();
  CHECK(generate(model, cache, prompt, 6, {.temperature = 0, .top_k = 4}).to_vector() ==
        greedy.to_vector());
  nn::KeyValueCache<config, 20> own;
  auto next = prompt;
  for (const std::int64_t token : greedy.to_vector()) {
    const auto logits = model.next_logits(next, own);
    next = nn::sample(logits, xla::Scalar(0));
    CHECK(next.item() == token);
  }
}

TEST_CASE("a decoder writes text in autocast with weights that are rounded once") {
  const xla::eager_mode_guard guard;
  auto model = make_model<test::tiny_llama>();
  nn::KeyValueCache<test::tiny_llama, 12, 2> cache;
  auto step = xla::compile(xla::autocast(nn::next_token<>), {.name = "next_token_autocast"});
  xla::Scalar temperature = 0;
  const auto prompt = test::text_batch(2, 3, 0, 0);
  std::vector<std::vector<std::int64_t>> written, again;
  for (auto* to : {&written, &again}) {
    cache.reset();
    auto next = prompt;
    for (int i = 0; i < 6; ++i) {
      next = step(model, cache, next, temperature);
      to->push_back(next.to_vector());
    }
  }
  CHECK(written == again);
  nn::KeyValueCache<test::tiny_llama, 12, 2> own;
  auto next = prompt;
  for (const auto& tokens : written) {
    const auto logits = xla::autocast(model, [&] { return model.next_logits(next, own); });
    next = xla::argmax(logits, -1, xla::keepdim);
    CHECK(next.to_vector() == tokens);
  }
}
