// SPDX-License-Identifier: Apache-2.0
// ResNet-18 against torchvision's, from the same weights (tests/reference).
#include "xla/models/resnet.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "data/resnet.inc"
#include "support/stored.hpp"
#include "xla/xla.hpp"

namespace models = xla::models;
static_assert(xla::parameter_count<models::ResNet18<>>() == 11'689'512);
static_assert(xla::parameter_count<models::ResNet50<>>() == 25'557'032);
static_assert(xla::parameter_count<models::ResNeXt50_32x4d<>>() == 25'028'904);

namespace {

/// Value number n of torchvision's state has numbers with seed n, scaled by what it is.
xla::NamedArray value_of(const reference::named_sizes& of, std::uint64_t seed) {
  const std::string name = of.name;
  if (name.ends_with("num_batches_tracked"))
    return {name, xla::dtype::int64, {}, std::vector<std::uint8_t>(8)};
  std::int64_t count = 1;
  for (const auto n : of.sizes) count *= n;
  const bool moved = name.ends_with("bias") || name.ends_with("mean");
  const float scale =
      of.sizes.size() == 1
          ? 1.0f / 16
          : static_cast<float>(
                std::sqrt(6.0 * static_cast<double>(of.sizes[0]) / static_cast<double>(count)) / 4);
  const float near = of.sizes.size() == 1 && !moved ? 1 : 0;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(near + scale * test::number<float>(seed, static_cast<std::uint64_t>(i)));
  std::vector<std::uint8_t> bytes(4 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, xla::dtype::float32, of.sizes, bytes};
}

}  // namespace

TEST_CASE("ResNet-18 takes torchvision's weights and gives its logits and losses") {
  xla::StateDict state;
  for (const auto& of : reference::resnet_state) state.push_back(value_of(of, state.size()));
  const xla::eager_mode_guard eager;
  models::ResNet18<10> model;
  xla::load_state_dict(model, state);
  const auto images = test::numbers<float>({4, 3, 48, 48}, 1000) / 4;
  model.eval();
  test::check_stored(xla::no_grad([&] { return model(images); }), reference::resnet_logits, 1e-4);
  model.train();
  xla::optim::SGD optimizer{model, {.lr = 0.001, .momentum = 0.9}};
  const auto labels = xla::tensor<std::int64_t>({3, 7, 0, 9});
  for (const auto wanted : reference::resnet_losses) {
    optimizer.zero_grad();
    const auto loss = xla::cross_entropy(model(images), labels);
    test::check_stored(loss, {wanted}, 1e-3);
    loss.backward();
    optimizer.step();
  }
}
