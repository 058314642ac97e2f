// SPDX-License-Identifier: Apache-2.0
// Models whose layers or blocks are a loop train and answer as those whose layers are called one
// by one: the same names and bits. Decoders: nn/scanned_models.
#include "support/scanned.hpp"
#include "support/decoder.hpp"
#include "support/small_bert.hpp"
#include "support/small_vit.hpp"
#include "xla/models/resnet.hpp"
#include "xla/nn/transformer.hpp"

namespace nn = xla::nn;
namespace models = xla::models;

namespace {

constexpr auto learn = [](const auto& output, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = mean(output * output);
  loss.backward();
  optimizer.step();
  return loss;
};

template <class Forward>
struct evaluated {
  constexpr auto operator()(auto& model, auto&... inputs) const {
    model.eval();
    return Forward()(model, inputs...);
  }
};

/// In a compiled function only the answer is asked for: nn/scanned_models trains in one.
template <class Loop, class Steps, class Forward>
void check(const Forward& forward, const auto&... inputs) {
  const auto step = [&](auto& model, auto&... rest) {
    const auto given = std::tie(rest...);
    const auto run = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return forward(model, std::get<I>(given)...);
    };
    return learn(run(std::make_index_sequence<sizeof...(rest) - 1>()),
                 std::get<sizeof...(rest) - 1>(given));
  };
  const auto answer_by = [](auto& f) {
    return [&f](test::snapshot& s, auto& model, const auto&... x) { s.add(f(model, x...)); };
  };
  const auto expected = test::check_scanned<Loop, Steps>(step, answer_by(forward), inputs...);
  auto compiled = xla::compile(evaluated<Forward>());
  CHECK(test::train_and_answer<Loop>(true, step, answer_by(compiled), inputs...)
            .difference(expected) == "");
}

using EncoderLayer = nn::TransformerEncoderLayer<nn::TransformerEncoderLayerConfig{
    .d_model = 8, .nhead = 2, .dim_feedforward = 12, .batch_first = true, .norm_first = true}>;
template <bool Scans>
using Encoder = nn::TransformerEncoder<EncoderLayer, 3, nn::Identity,
                                       nn::TransformerEncoderConfig{.scan_layers = Scans}>;
constexpr auto encode = [](auto& model, auto& x, auto& padding) {
  return model(x, {.src_key_padding_mask = padding, .is_causal = true});
};

template <bool Scans>
using Bert = models::BertModel<[] {
  auto c = test::small_bert(true);
  c.scan_layers = Scans;
  return c;
}()>;
constexpr auto pool = [](auto& model, auto& ids, auto& mask) {
  return model.pooler(model(ids, mask));
};

template <bool Scans>
using Vit = models::VisionTransformer<[] {
  auto c = test::small_vit(true);
  c.num_layers = 3;
  c.scan_layers = Scans;
  return c;
}()>;
constexpr auto classify = [](auto& model, auto& images) { return model(images); };

/// A stage of five blocks, of which the four after the first are equal.
template <bool Scans, bool Bottleneck>
using Residual = models::ResNet<models::ResNetConfig{
    .layers = {5, 1, 1, 1}, .bottleneck = Bottleneck, .scan_layers = Scans, .num_classes = 10}>;
constexpr auto classify_step = [](auto& model, auto& images, auto& optimizer) {
  return learn(model(images), optimizer);
};

}  // namespace

TEST_CASE("PyTorch's encoder with layers as a loop, with padding and a causal mask") {
  check<Encoder<true>, Encoder<false>>(encode, test::numbers<float>({2, 5, 8}),
                                       test::numbers<float>({2, 5}, 3) > 1);
}

TEST_CASE("BERT with layers as a loop, with padding") {
  const auto ids = test::text_batch(2, 6, 0, 0);
  check<Bert<true>, Bert<false>>(pool, ids, xla::cast<std::int64_t>(ids < 8));
}

TEST_CASE("a vision transformer with blocks as a loop, with dropout") {
  check<Vit<true>, Vit<false>>(classify, test::numbers<float>({2, 3, 12, 12}));
}

TEST_CASE("a residual network with equal blocks of a stage as a loop, with running statistics") {
  const auto images = test::numbers<float>({2, 3, 35, 41});
  check<Residual<true, false>, Residual<false, false>>(classify, images);
  const auto answer = [](test::snapshot& s, const auto& model, const auto& x) { s.add(model(x)); };
  using Loop = Residual<true, true>;
  const auto expected =
      test::check_scanned<Loop, Residual<false, true>>(classify_step, answer, images);
  auto compiled = xla::compile(classify_step);
  CHECK(test::train_and_answer<Loop>(false, compiled, answer, images).difference(expected) == "");
  Loop loop;
  xla::optim::SGD optimizer{loop};
  CHECK_THAT(compiled.graph(xla::Stage::lowered, loop, images, optimizer),
             test::contains("trip 4"));
}
