// SPDX-License-Identifier: Apache-2.0
#include "xla/models/vit.hpp"

#include <algorithm>
#include <cstring>

#include "support/models.hpp"
#include "support/small_vit.hpp"
#include "support/steps.hpp"

namespace models = xla::models;

static_assert(xla::parameter_count<models::VisionTransformer<>>() == 86'567'656);
static_assert(xla::parameter_count<models::VisionTransformer<models::vit_b_32>>() == 88'224'232);
static_assert(xla::parameter_count<models::VisionTransformer<models::vit_l_16>>() == 304'326'632);

namespace {

using Small = models::VisionTransformer<test::small_vit()>;
using Dropping = models::VisionTransformer<test::small_vit(true)>;

/// Two steps of a model that begins with Small's numbers.
void train(auto& model, auto& optimizer, auto& step) {
  xla::manual_seed(2);
  model.train();
  auto x = test::numbers<float>({2, 3, 12, 12});
  auto labels = xla::tensor<std::int64_t>({2, 0});
  for (int i = 0; i < 2; ++i) step(model, x, labels, optimizer);
}

/// What they leave in a copy.
test::snapshot trained(auto model, auto& step) {
  test::fill(model);
  xla::optim::SGD optimizer{model, {.lr = 0.02, .momentum = 0.9}};
  train(model, optimizer, step);
  return test::state_of(model, optimizer);
}

/// What a copy answers after them.
auto learnt(auto model) {
  test::fill(model);
  xla::optim::SGD optimizer{model, {.lr = 0.02, .momentum = 0.9}};
  train(model, optimizer, test::class_step);
  model.eval();
  return model(test::numbers<float>({2, 3, 12, 12}));
}

}  // namespace

TEST_CASE("a vision transformer computes and learns as timm's, the same in every mode") {
  test::check_states<models::VisionTransformer<>>("vit_base_patch16_224");
  CHECK(Small{}.norm.eps.value() == 1e-6);
  CHECK(Small{}.blocks[1].norm2.eps.value() == 1e-6);
  test::check_model("vit", Small{}, test::image_batch({2, 3, 12, 12}), 0.02, 1e-5);
}

TEST_CASE("a vision transformer with dropout trains the same in every mode") {
  const xla::eager_mode_guard eager;
  const Dropping model(0.25, 0.125);
  CHECK(model.blocks[1].mlp.drop2.p.value() == 0.25);
  CHECK(model.blocks[0].attn.attn_drop.p.value() == 0.125);
  CHECK(Dropping{}.pos_drop.p.value() == 0.1);
  CHECK(Dropping{}.blocks[1].attn.attn_drop.p.value() == 0);
  CHECK_THROWS_AS(Dropping(0.1, 1.5), xla::error);
  const auto want = trained(model, test::class_step);
  auto compiled = xla::compile(test::class_step);
  CHECK(trained(model, compiled).difference(want) == "");
  {
    INFO("on the interpreter");
    const test::on_backend op_by_op("interpreter");
    CHECK(trained(model, compiled).difference(want) == "");
  }
  xla::eager_mode(false);
  CHECK(trained(model, test::class_step).difference(want) == "");
  xla::eager_mode(true);

  const auto without = trained(Small{}, test::class_step);
  CHECK(without.difference(want) != "");
  // Attention that may drop weights is composed of other ops, and rounds otherwise.
  test::check_equal(learnt(Dropping(0)), learnt(Small{}), 1e-4);
  Dropping dropping;
  Small plain;
  test::fill(dropping);
  test::fill(plain);
  dropping.eval();
  const auto x = test::numbers<float>({2, 3, 12, 12});
  test::check_equal(dropping(x), plain(x));
}

namespace {

/// Names and sizes of ViT-B/16 after the way to others' names, in whatever order.
void check_renamed(const std::string& name, auto&& way) {
  INFO(name);
  auto got = test::described(way(test::empty_states<models::VisionTransformer<>>()));
  auto want = test::pytorch::instance().states(name);
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  CHECK(got == want);
}

}  // namespace

TEST_CASE("a vision transformer takes torchvision's names, and gives them back") {
  const xla::eager_mode_guard eager;
  check_renamed("vit_b_16", models::vit_to_torchvision);

  const Small model;
  Small other;
  auto state = models::vit_to_torchvision(xla::state_dict(model));
  CHECK(xla::load_state_dict(other, models::vit_from_torchvision(state)).empty());
  test::check_equal(other.blocks[1].attn.qkv.weight, model.blocks[1].attn.qkv.weight);
  for (auto& array : state)  // as the files of torchvision's first vision transformers
    for (const auto& [now, once] :
         {std::pair(".mlp.0.", ".mlp.linear_1."), {".mlp.3.", ".mlp.linear_2."}})
      if (const auto at = array.name.find(now); at != std::string::npos)
        array.name.replace(at, 7, once);
  CHECK(xla::load_state_dict(other, models::vit_from_torchvision(state)).empty());
}

TEST_CASE("a vision transformer takes Hugging Face's names, and gives them back") {
  const xla::eager_mode_guard eager;
  check_renamed("vit_base_hugging_face", models::vit_to_hugging_face<>);

  Small model;
  Small other;
  test::fill(model);
  const auto state = models::vit_to_hugging_face(xla::state_dict(model));
  CHECK(xla::load_state_dict(other, models::vit_from_hugging_face(state)).empty());
  CHECK(xla::state_dict(other) == xla::state_dict(model));
  auto body = models::part_of(state, "vit.");  // of a model without a head
  const auto key = std::find_if(body.begin(), body.end(), [](const auto& array) {
    return array.name == "encoder.layer.1.attention.attention.key.weight";
  });
  REQUIRE(key != body.end());
  const auto rows = narrow(model.blocks[1].attn.qkv.weight, 0, 16, 16).to_vector();
  REQUIRE(key->bytes.size() == rows.size() * sizeof(float));
  CHECK(std::memcmp(key->bytes.data(), rows.data(), key->bytes.size()) == 0);
  CHECK(xla::load_state_dict(other, models::vit_from_hugging_face(body), false).missing_keys ==
        std::vector<std::string>{"head.weight", "head.bias"});
  std::erase_if(body,
                [](const auto& a) { return a.name.ends_with("1.attention.attention.query.bias"); });
  CHECK_THROWS_WITH(
      models::vit_from_hugging_face(body),
      test::contains("vit_from_hugging_face: there is no "
                     "'encoder.layer.1.attention.attention.query.bias' of the sizes"));
}

TEST_CASE("a vision transformer begins with small weights, and refuses other images") {
  const xla::eager_mode_guard eager;
  const Small model;
  CHECK(max(abs(model.head.weight)).item() < 0.15f);
  CHECK(max(abs(model.head.weight)).item() > 0.02f);
  CHECK(max(abs(model.head.bias)).item() == 0);
  CHECK(max(abs(model.cls_token)).item() < 1e-5f);
  test::check_equal(model.norm.weight, xla::ones<float>({16}));
  for (const auto& [height, width] :  // the last two have 9 patches, too
       {std::pair<int, int>{16, 12}, {12, 16}, {15, 15}, {4, 36}})
    CHECK_THROWS_AS(model(test::numbers<float>({1, 3, height, width})), xla::shape_error);
  CHECK_THROWS_WITH(
      model(test::numbers<float>({1, 3, 12, 36})),
      test::contains("models::VisionTransformer") && test::contains("(1, 3, 12, 36)"));
}
