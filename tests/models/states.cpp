// SPDX-License-Identifier: Apache-2.0
// All models at their full sizes, of which nothing is computed; and how networks begin.
#include "support/models.hpp"
#include "support/moments.hpp"
#include "support/steps.hpp"
#include "xla/models/alexnet.hpp"
#include "xla/models/head.hpp"
#include "xla/models/mnasnet.hpp"
#include "xla/models/mobilenet_v2.hpp"
#include "xla/models/resnet.hpp"
#include "xla/models/squeezenet.hpp"
#include "xla/models/vgg.hpp"
#include "xla/models/vit.hpp"
#include "xla/op/remainder.hpp"
#include "xla/optim/adamw.hpp"

namespace models = xla::models;

static_assert(xla::parameter_count<models::ResNet18<>>() == 11'689'512);
static_assert(xla::parameter_count<models::ResNet50<>>() == 25'557'032);
static_assert(xla::parameter_count<models::VGG16<>>() == 138'357'544);

TEST_CASE("states have torchvision's names and sizes, in its order") {
  test::check_states<models::ResNet18<>>("resnet18");
  test::check_states<models::ResNet34<>>("resnet34");
  test::check_states<models::ResNet50<>>("resnet50");
  test::check_states<models::ResNet101<>>("resnet101");
  test::check_states<models::ResNet152<>>("resnet152");
  test::check_states<models::ResNeXt50_32x4d<>>("resnext50_32x4d");
  test::check_states<models::AlexNet<>>("alexnet");
  test::check_states<models::VGG11<>>("vgg11");
  test::check_states<models::VGG13<>>("vgg13");
  test::check_states<models::VGG16<>>("vgg16");
  test::check_states<models::VGG19<>>("vgg19");
  test::check_states<models::SqueezeNet1_1<>>("squeezenet1_1");
  test::check_states<models::MobileNetV2<>>("mobilenet_v2");
  test::check_states<models::MNASNet1_0<>>("mnasnet1_0");
}

namespace {

template <class Model>
Model begun() {
  xla::manual_seed(1);
  return Model{};
}
/// He's normal numbers, for a sum over this many products.
void check_he(const xla::Tensor<float, 4>& weight, double products) {
  test::check_moments(weight, 0, std::sqrt(2 / products));
}
void check_zeros(const xla::Tensor<float, 1>& bias) { CHECK(max(abs(bias)).item() == 0); }
template <std::size_t I>
const auto& layer(const auto& sequence) {
  return std::get<I>(sequence.layers);
}

}  // namespace

TEST_CASE("networks begin with torchvision's deviations and bounds") {
  const xla::eager_mode_guard eager;
  const auto resnet = begun<models::ResNet<models::ResNetConfig{.layers = {1, 1, 1, 1}}>>();
  check_he(resnet.conv1.weight, 64 * 49);
  check_he(layer<0>(resnet.layer2).conv1.weight, 128 * 9);
  test::check_uniform(resnet.fc.weight, 1 / std::sqrt(512.0));
  test::check_equal(resnet.bn1.weight, xla::ones<float>({64}));
  check_zeros(resnet.bn1.bias);

  const auto vgg = begun<models::VGG<models::VGGConfig{.convolutions = {1, 1, 1, 1, 1},
                                                       .channels = {32, 16, 16, 16, 16},
                                                       .hidden = 40,
                                                       .num_classes = 100}>>();
  check_he(layer<3>(vgg.features).weight, 16 * 9);
  check_zeros(layer<3>(vgg.features).bias);
  test::check_moments(layer<6>(vgg.classifier).weight, 0, 0.01);
  check_zeros(layer<6>(vgg.classifier).bias);

  const auto squeezed = begun<models::SqueezeNet1_1<>>();
  const auto& fire = layer<3>(squeezed.features);
  test::check_uniform(fire.expand3x3.weight, std::sqrt(6.0 / (16 * 9)));
  check_zeros(fire.expand3x3.bias);
  test::check_moments(layer<1>(squeezed.classifier).weight, 0, 0.01);
  check_zeros(layer<1>(squeezed.classifier).bias);

  const auto mobile = begun<models::BasicMobileNetV2<models::MobileNetV2Config{
      .width_mult = 0.25, .blocks = {1, 1, 0, 0, 0, 0, 0}, .num_classes = 10}>>();
  check_he(layer<0>(layer<3>(mobile.features)).weight, 1280);
  test::check_moments(layer<1>(mobile.classifier).weight, 0, 0.01);
  check_zeros(layer<1>(mobile.classifier).bias);

  const auto mnas = begun<models::MNASNet<models::MNASNetConfig{
      .alpha = 0.25, .blocks = {1, 1, 1, 1, 1, 1}, .num_classes = 10}>>();
  check_he(layer<14>(mnas.layers).weight, 1280);
  test::check_uniform(layer<1>(mnas.classifier).weight, std::sqrt(3.0 / 10));
  check_zeros(layer<1>(mnas.classifier).bias);

  const auto alex = begun<models::AlexNet<10, 24>>();
  test::check_uniform(layer<3>(alex.features).weight, 1 / std::sqrt(64.0 * 25));
}

namespace {

/// Of a model with another head only the head is another.
template <class Model>
void check_head(const std::string& prefix, std::int64_t features) {
  Model model;
  CHECK(models::head_prefix(model) == prefix);
  const auto before = xla::state_dict(model);
  models::AnyClasses<Model> other{7};
  CHECK(models::head_prefix(other) == prefix);
  const auto after = xla::state_dict(other);
  REQUIRE(after.size() == before.size());
  int heads = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(after[i].name == before[i].name);
    const bool in_head = after[i].name.starts_with(prefix);
    heads += in_head ? 1 : 0;
    CHECK((after[i].sizes == before[i].sizes) != in_head);
    if (in_head) CHECK(after[i].sizes[0] == 7);
    if (in_head && after[i].sizes.size() > 1) CHECK(after[i].sizes[1] == features);
  }
  CHECK(heads == 2);
}

}  // namespace

TEST_CASE("every network of images gives its head away for another") {
  const xla::eager_mode_guard eager;
  check_head<models::ResNet<models::ResNetConfig{.layers = {1, 1, 1, 1}}>>("fc.", 512);
  check_head<models::AlexNet<10, 16>>("classifier.6.", 16);
  check_head<models::VGG<models::VGGConfig{
      .convolutions = {1, 1, 1, 1, 1}, .channels = {8, 8, 8, 8, 8}, .hidden = 40}>>("classifier.6.",
                                                                                    40);
  check_head<models::SqueezeNet1_1<>>("classifier.1.", 512);
  check_head<models::BasicMobileNetV2<models::MobileNetV2Config{
      .width_mult = 0.25, .blocks = {1, 1, 0, 0, 0, 0, 0}}>>("classifier.1.", 1280);
  check_head<models::MNASNet<models::MNASNetConfig{.alpha = 0.25, .blocks = {1, 1, 1, 1, 1, 1}}>>(
      "classifier.1.", 1280);
  check_head<models::VisionTransformer<models::VisionTransformerConfig{
      .image_size = 32, .num_layers = 1, .num_heads = 2, .hidden_dim = 16, .mlp_dim = 16}>>("head.",
                                                                                            16);
}

namespace {

struct Tiny {
  xla::nn::Linear fc1{6, 4}, fc{4, 10};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const { return fc(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc)
};

}  // namespace

TEST_CASE("one compiled step trains networks for any number of classes, the same in every mode") {
  auto compiled = xla::compile(test::class_step, {.name = "tiny"});
  const auto losses = [](auto& step, std::int64_t classes) {
    xla::manual_seed(classes);
    models::AnyClasses<Tiny> model{classes};
    CHECK(model.fc.weight.sizes() == std::vector<std::int64_t>{classes, 4});
    xla::optim::AdamW optimizer{model, {.lr = 0.1}};
    const auto x = xla::randn<float>({5, 6});
    const auto y = xla::arange(5) % classes;
    std::vector<float> out;
    for (int i = 0; i < 4; ++i) out.push_back(step(model, x, y, optimizer).item());
    CHECK(out.back() < out.front());
    return out;
  };
  for (const std::int64_t classes : {3, 7}) {
    const xla::eager_mode_guard eager;
    const auto expected = losses(test::class_step, classes);
    CHECK(losses(compiled, classes) == expected);
    xla::eager_mode(false);
    CHECK(losses(test::class_step, classes) == expected);
  }
  const xla::eager_mode_guard eager;
  Tiny fixed;
  models::replace_head(fixed, 3);
  xla::optim::AdamW optimizer{fixed};
  const auto x = xla::randn<float>({5, 6});
  const auto y = xla::arange(5) % 3;
  CHECK_THROWS_WITH(compiled(fixed, x, y, optimizer),
                    test::contains("fc.weight is (3, 4), but its type's default constructor makes "
                                   "(10, 4)"));
}
