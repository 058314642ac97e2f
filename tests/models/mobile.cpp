// SPDX-License-Identifier: Apache-2.0
#include "support/models.hpp"
#include "xla/models/mnasnet.hpp"
#include "xla/models/mobilenet_v2.hpp"

namespace models = xla::models;

TEST_CASE("MobileNet v2 computes what torchvision's does, the same in every mode") {
  using Narrow = models::BasicMobileNetV2<models::MobileNetV2Config{
      .width_mult = 0.25, .blocks = {1, 2, 1, 0, 0, 0, 0}, .num_classes = 10}>;
  test::check_model("mobilenet_v2/narrow", Narrow{0.0}, test::image_batch({4, 3, 33, 39}), 0.01,
                    1e-4);
}

TEST_CASE("MNASNet computes what torchvision's does, the same in every mode") {
  using Narrow = models::MNASNet<models::MNASNetConfig{
      .alpha = 0.25, .blocks = {1, 2, 1, 1, 1, 1}, .num_classes = 10}>;
  test::check_model("mnasnet/narrow", Narrow{0.0}, test::image_batch({4, 3, 65, 71}), 0.01, 1e-4);
}

TEST_CASE("at their full sizes they have torchvision's logits") {
  const test::image_batch batch({2, 3, 64, 75});
  test::check_logits("mobilenet_v2", models::MobileNetV2<10>{}, batch, 1e-4);
  test::check_logits("mnasnet1_0", models::MNASNet1_0<10>{}, batch, 1e-4);
}
