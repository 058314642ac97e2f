// SPDX-License-Identifier: Apache-2.0
// All models at their full sizes, of which nothing is computed.
#include "support/models.hpp"
#include "xla/models/alexnet.hpp"
#include "xla/models/mnasnet.hpp"
#include "xla/models/mobilenet_v2.hpp"
#include "xla/models/resnet.hpp"
#include "xla/models/squeezenet.hpp"
#include "xla/models/vgg.hpp"

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
