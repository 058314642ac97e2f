// SPDX-License-Identifier: Apache-2.0
#include "xla/models/resnet.hpp"
#include "support/models.hpp"
#include "xla/models/head.hpp"

namespace models = xla::models;

namespace {

template <int Classes>
using Net = models::ResNet<models::ResNetConfig{.layers = {2, 1, 1, 1},
                                                .bottleneck = true,
                                                .groups = 4,
                                                .width_per_group = 8,
                                                .num_classes = Classes}>;

using Basic = models::ResNet<models::ResNetConfig{.layers = {1, 1, 1, 1}, .num_classes = 10}>;
using Ungrouped = models::ResNet<models::ResNetConfig{
    .layers = {1, 1, 1, 1}, .bottleneck = true, .width_per_group = 16, .num_classes = 10}>;

void freeze_backbone(auto& model) {
  xla::for_each_parameter(model, [](auto& p) { p.requires_grad_(false); });
  xla::for_each_parameter(models::head(model), [](auto& p) { p.requires_grad_(true); });
}

}  // namespace

TEST_CASE("bottlenecks with groups compute what torchvision's do, the same in every mode") {
  test::check_model("bottlenecks", Net<10>{}, test::image_batch({4, 3, 35, 41}), 0.001, 1e-4);
}

TEST_CASE("basic blocks do the same, bottlenecks without groups compute what torchvision's do") {
  const test::image_batch batch({4, 3, 35, 41});
  test::check_model("basic_blocks", Basic{}, batch, 0.001, 1e-4);
  test::check_numbers_of("bottlenecks/ungrouped", Ungrouped{}, batch, 0.001, 1e-4);
}

TEST_CASE("a network takes the weights of one with another head") {
  const xla::eager_mode_guard eager;
  Net<10> from;
  test::fill(from);
  auto state = xla::state_dict(from);
  Net<3> model;
  const auto before = model.fc.weight.detach();
  CHECK_THROWS_WITH(xla::load_state_dict(model, state),
                    test::contains("fc.weight: float32[10, 2048] found, float32[3, 2048] needed"));
  std::erase_if(state, [](const auto& array) { return array.name.starts_with("fc."); });
  CHECK_THROWS_WITH(xla::load_state_dict(model, state),
                    test::contains("missing: fc.weight, fc.bias"));
  CHECK(xla::load_state_dict(model, state, false).missing_keys ==
        std::vector<std::string>{"fc.weight", "fc.bias"});
  test::check_equal(model.fc.weight, before);
  test::check_equal(model.conv1.weight, from.conv1.weight);
  models::replace_head(from, 5);
  const test::image_batch batch({2, 3, 35, 41});
  from.eval();
  CHECK(from(batch.images).sizes() == std::vector<std::int64_t>{2, 5});
}

TEST_CASE("a frozen backbone stays, and no gradients of it are computed, the same in every mode") {
  const xla::eager_mode_guard eager;
  Net<10> model;
  test::fill(model);
  const auto weight = model.conv1.weight.detach();
  const auto head = model.fc.weight.detach();
  test::image_batch batch({4, 3, 35, 41});
  const auto train = [&](auto& step) {
    Net<10> copy = model;
    freeze_backbone(copy);
    auto result = test::train_images(copy, batch, 0.001, step);
    CHECK(result.gradients.size() == 2);
    CHECK(result.losses.back() < result.losses.front());
    test::check_equal(copy.conv1.weight, weight);
    CHECK(copy.fc.weight.to_vector() != head.to_vector());
    return result.left;
  };
  const auto left = train(test::image_step);
  auto compiled = xla::compile(test::image_step);
  CHECK(train(compiled).difference(left) == "");
  xla::eager_mode(false);
  CHECK(train(test::image_step).difference(left) == "");

  xla::optim::SGD optimizer{model};
  const auto outputs = [&] {
    return compiled.memory_analysis(model, batch.images, batch.labels, optimizer).outputs;
  };
  const auto all = outputs();
  freeze_backbone(model);
  CHECK(outputs() < all / 20);
}
