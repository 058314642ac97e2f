// SPDX-License-Identifier: Apache-2.0
// Networks without batch normalization.
#include "support/models.hpp"
#include "xla/models/alexnet.hpp"
#include "xla/models/squeezenet.hpp"
#include "xla/models/vgg.hpp"

namespace models = xla::models;

TEST_CASE("AlexNet computes what torchvision's does, the same in every mode") {
  test::check_model("alexnet/narrow", models::AlexNet<10, 24>{0.0},
                    test::image_batch({2, 3, 63, 71}), 0.0001, 1e-4);
}

TEST_CASE("VGG computes what torchvision's does, the same in every mode") {
  using Narrow = models::VGG<models::VGGConfig{.convolutions = {1, 1, 2, 1, 2},
                                               .channels = {8, 16, 24, 32, 32},
                                               .hidden = 40,
                                               .num_classes = 10}>;
  test::check_model("vgg/narrow", Narrow{0.0}, test::image_batch({4, 3, 32, 39}), 0.001, 1e-4);
}

TEST_CASE("SqueezeNet computes what torchvision's does, the same in every mode") {
  test::check_model("squeezenet1_1", models::SqueezeNet1_1<10>{0.0},
                    test::image_batch({2, 3, 33, 42}), 0.0003, 1e-4);
}
