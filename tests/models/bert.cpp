// SPDX-License-Identifier: Apache-2.0
#include "xla/models/bert.hpp"

#include "support/models.hpp"
#include "support/small_bert.hpp"
#include "xla/models/head.hpp"

namespace models = xla::models;
using test::check_pytorch;
using test::small_bert;
using tokens = xla::Tensor<std::int64_t, 2>;

static_assert(xla::parameter_count<models::BertModel<>>() == 109'482'240);
static_assert(xla::parameter_count<models::BertForMaskedLM<>>() == 109'514'298);
static_assert(xla::parameter_count<models::BertModel<models::bert_large>>() == 335'141'888);

namespace {

/// The texts of bert_vit.py: of 7 tokens, of 4 and of one.
struct texts {
  tokens ids, mask, segments;
  texts() {
    std::int64_t i[21], m[21], s[21];
    for (std::int64_t n = 0; n < 21; ++n) {
      m[n] = n % 7 < (n < 7 ? 7 : n < 14 ? 4 : 1);
      i[n] = m[n] != 0 ? n * n % 47 + 3 : 0;
      s[n] = n % 7 >= 3;
    }
    ids = xla::from_blob(i, {3, 7});
    mask = xla::from_blob(m, {3, 7});
    segments = xla::from_blob(s, {3, 7});
  }
};

constexpr auto classify = [](auto& model, auto& ids, auto& mask, auto& segments, auto& labels,
                             auto& optimizer) {
  optimizer.zero_grad();
  auto loss = cross_entropy(model(ids, mask, segments), labels);
  loss.backward();
  optimizer.step();
  return loss;
};
constexpr auto guess = [](auto& model, auto& ids, auto& labels, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = cross_entropy(flatten<0, 1>(model(ids)), labels);
  loss.backward();
  optimizer.step();
  return loss;
};

/// Five steps of a copy of the model as train() in bert_vit.py; what they leave.
test::snapshot train(auto model, auto& step, std::vector<float>& losses,
                     std::vector<float>& gradients, auto... inputs) {
  xla::manual_seed(2);
  model.train();
  xla::optim::SGD optimizer{model, {.lr = 0.02, .momentum = 0.9}};
  for (int i = 0; i < 5; ++i) {
    losses.push_back(step(model, inputs..., optimizer).item());
    if (i > 0) continue;
    xla::for_each_parameter(model, [&](auto& p) { gradients.push_back(test::length(p.grad())); });
  }
  return test::state_of(model, optimizer);
}

/// Training in eager mode, and that of the other modes has the same bits.
auto check_training(const auto& model, const auto& step, const auto&... inputs) {
  struct {
    std::vector<float> losses, gradients;
  } out, other;
  const auto want = train(model, step, out.losses, out.gradients, inputs...);
  auto compiled = xla::compile(step);
  CHECK(train(model, compiled, other.losses, other.gradients, inputs...).difference(want) == "");
  {
    INFO("on the interpreter");
    const test::on_backend op_by_op("interpreter");
    CHECK(train(model, compiled, other.losses, other.gradients, inputs...).difference(want) == "");
  }
  xla::eager_mode(false);
  CHECK(train(model, step, other.losses, other.gradients, inputs...).difference(want) == "");
  xla::eager_mode(true);
  return out;
}

const auto some_labels = [] { return xla::tensor<std::int64_t>({2, 0, 1}); };

}  // namespace

TEST_CASE("BERT has Hugging Face's names and sizes") {
  test::check_states<models::BertForSequenceClassification<>>("bert_base");
  test::check_states<models::BertForMaskedLM<>>("bert_base_masked_lm");
}

TEST_CASE("BERT reads and learns as Hugging Face's, the same in every mode") {
  const xla::eager_mode_guard eager;
  const texts t;
  models::BertForSequenceClassification<small_bert(), 3> model;
  test::fill(model);
  model.eval();
  check_pytorch("models/bert/hidden", model.bert(t.ids), 1e-5);
  check_pytorch("models/bert/pooled", model.bert.pooler(model.bert(t.ids, t.mask)), 1e-5);
  const auto logits = model(t.ids, t.mask, t.segments);
  check_pytorch("models/bert/logits", logits, 1e-5);
  auto predict = xla::compile(model);
  test::check_equal(predict(t.ids, t.mask, t.segments), logits);

  const auto got = check_training(model, classify, t.ids, t.mask, t.segments, some_labels());
  test::check_numbers("models/bert/losses", got.losses, 1e-5);
  test::check_numbers("models/bert/gradients", got.gradients, 1e-5);
}

TEST_CASE("BERT guesses words as Hugging Face's, by one table for both ends") {
  const xla::eager_mode_guard eager;
  const texts t;
  models::BertForMaskedLM<small_bert()> model;
  test::fill(model);
  model.eval();
  check_pytorch("models/bert_masked_lm/logits", select(model(t.ids, t.mask), 1, 0), 1e-5);
  const auto got = check_training(model, guess, t.ids, flatten(t.ids));
  test::check_numbers("models/bert_masked_lm/losses", got.losses, 1e-5);
  test::check_numbers("models/bert_masked_lm/gradients", got.gradients, 1e-5);
}

TEST_CASE("BERT with dropout trains the same in every mode; padding changes no text") {
  const xla::eager_mode_guard eager;
  const texts t;
  xla::manual_seed(4);
  models::BertForSequenceClassification<small_bert(true), 3> model;
  CHECK(max(abs(model.bert.embeddings.word_embeddings.weight[0])).item() == 0);
  CHECK(model.dropout.p.value() == 0.1);
  CHECK(models::head_prefix(model) == "classifier.");
  check_training(model, classify, t.ids, t.mask, t.segments, some_labels());

  model.eval();
  const auto all = model.bert(t.ids, t.mask);
  const auto shorter = model.bert(narrow(narrow(t.ids, 0, 1, 1), 1, 0, 4));
  test::check_equal(narrow(narrow(all, 0, 1, 1), 1, 0, 4), shorter, 1e-5);
}

TEST_CASE("BERT takes the names of its first files, and says what does not fit") {
  const xla::eager_mode_guard eager;
  models::BertModel<small_bert()> model;
  auto state = xla::state_dict(model);
  for (auto& array : state) {
    const auto at = array.name.find("LayerNorm.");
    if (at == std::string::npos) continue;
    array.name.replace(at, std::string::npos,
                       array.name.ends_with("bias") ? "LayerNorm.beta" : "LayerNorm.gamma");
  }
  CHECK_THROWS_WITH(xla::load_state_dict(model, state),
                    test::contains("embeddings.LayerNorm.weight"));
  const auto fits = [&] { return xla::load_state_dict(model, models::bert_names(state)).empty(); };
  CHECK(fits());
  auto& places = state.emplace_back(state.front());  // whatever they hold
  places.name = "embeddings.position_ids";
  CHECK_THROWS_WITH(xla::load_state_dict(model, state), test::contains("embeddings.position_ids"));
  CHECK(fits());

  auto file = state;  // of the model with its heads
  for (auto& array : file) array.name = "bert." + array.name;
  file.push_back({.name = "cls.seq_relationship.bias", .sizes = {0}, .bytes = {}});
  models::BertModel<small_bert()> other;
  CHECK(xla::load_state_dict(other, models::part_of(models::bert_names(file), "bert.")).empty());
  test::check_equal(other.pooler.dense.weight, model.pooler.dense.weight);
  models::BertForMaskedLM<small_bert()> whole;
  xla::load_state_dict(whole, models::bert_names(file), false);
  test::check_equal(whole.bert.embeddings.LayerNorm.weight, model.embeddings.LayerNorm.weight);
  test::check_equal(whole.bert.encoder.layer[1].output.dense.weight,
                    model.encoder.layer[1].output.dense.weight);
  auto twice = xla::state_dict(whole);
  for (const auto& [from, to] :
       {std::pair{"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
        std::pair{"cls.predictions.bias", "cls.predictions.decoder.bias"}}) {
    const auto same = [&](const auto& a) { return a.name == from; };
    twice.push_back(*std::find_if(twice.begin(), twice.end(), same));
    twice.back().name = to;
  }
  CHECK(xla::load_state_dict(whole, twice).empty());
  CHECK_THROWS_AS(model(xla::full<std::int64_t>({1, 3}, 50)), xla::index_error);
  CHECK_THROWS_AS(model(xla::zeros<std::int64_t>({1, 13})), xla::shape_error);
}
