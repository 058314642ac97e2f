// SPDX-License-Identifier: Apache-2.0
#include "support/decoder.hpp"

#include <set>

namespace nn = xla::nn;
using test::check_equal;

namespace {

static_assert(xla::parameter_count<nn::Decoder<nn::seed_decoder>>() == 214'176'768);
static_assert(xla::parameter_count<nn::Decoder<nn::small_decoder>>() == 9'603'584);
static_assert(xla::parameter_count<nn::Decoder<nn::char_decoder>>() == 809'856);

/// Logits with one token of the first sequence changed: which rows of logits differ.
template <class Model>
std::set<std::int64_t> rows_that_change(const Model& model, std::int64_t token) {
  const auto a = test::text_batch(2, 6, 0, 0);
  auto v = a.to_vector();
  v[static_cast<std::size_t>(token)] = (v[static_cast<std::size_t>(token)] + 1) % 11;
  const auto x = model(a), y = model(xla::from_blob(v.data(), {2, 6}));
  std::set<std::int64_t> rows;
  for (std::int64_t i = 0; i < std::int64_t(x.numel()); ++i)
    if (x.data()[i] != y.data()[i]) rows.insert(i / 11);
  return rows;
}

}  // namespace

TEST_CASE("a token changes its own logits and later ones of its sequence, no earlier one") {
  const xla::eager_mode_guard eager;
  nn::Decoder<test::tiny_gpt> gpt;
  gpt.eval();
  const nn::Decoder<test::tiny_llama> llama;
  CHECK(rows_that_change(gpt, 3) == std::set<std::int64_t>{3, 4, 5});
  CHECK(rows_that_change(llama, 3) == std::set<std::int64_t>{3, 4, 5});
  constexpr auto full = [] {
    auto c = test::tiny_llama;
    c.causal = false;
    return c;
  }();
  CHECK(rows_that_change(nn::Decoder<full>{}, 3) == std::set<std::int64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("padding is not seen: the others' logits are those of the text alone") {
  const xla::eager_mode_guard eager;
  constexpr auto full = [] {
    auto c = test::tiny_llama;
    c.causal = false;
    return c;
  }();
  const nn::Decoder<full> model;
  const auto text = test::text_batch(1, 6, 0, 0);
  const auto present = xla::unsqueeze(xla::arange<float>(6) < 4, 0);
  const auto alone = model(slice(text, 1, 0, 4));
  check_equal(slice(model(text, present), 1, 0, 4), alone, 1e-5);
  CHECK(max(abs(slice(model(text), 1, 0, 4) - alone)).item() > 1e-3f);
}

TEST_CASE("parameters of decoders: their number, names and first values") {
  const xla::eager_mode_guard eager;
  nn::Decoder<test::tiny_gpt> gpt;
  std::int64_t count = 0;
  std::vector<std::string> names;
  xla::named_parameters(gpt, [&](const std::string& name, auto& p) {
    names.push_back(name);
    count += p.numel();
    const double spread = std::sqrt(mean(p * p).item());
    INFO(name);
    if (name.ends_with("bias")) CHECK(spread == 0);
    else if (name.ends_with("norm.weight")) CHECK(spread == 1);
    else
      CHECK(std::abs(spread - (name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight")
                                   ? 0.01
                                   : 0.02)) < 0.004);
  });
  CHECK(count == xla::parameter_count<nn::Decoder<test::tiny_gpt>>());
  CHECK(count == xla::parameter_count(gpt));
  REQUIRE(names.size() == 2 + 2 * 16 + 2);
  CHECK(names.front() == "embed_tokens.weight");
  CHECK(names[1] == "embed_positions.weight");
  CHECK(names[4] == "layers.0.self_attn.q_proj.weight");
  CHECK(names.back() == "norm.bias");

  nn::Decoder<test::tiny_llama> llama;
  CHECK(xla::parameter_count(llama) == xla::parameter_count<nn::Decoder<test::tiny_llama>>());
  const float bound = max(abs(llama.lm_head.weight)).item();
  CHECK(bound <= 0.25f);
  CHECK(bound > 0.2f);
}

TEST_CASE("a sequence longer than the learned positions is refused") {
  const xla::eager_mode_guard eager;
  nn::Decoder<test::tiny_gpt> gpt;
  CHECK_THROWS_WITH(gpt(test::text_batch(1, 9, 0, 0)), test::contains("narrow: there are no 9"));
}
