// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <xla/models/alexnet.hpp>
#include <xla/models/head.hpp>
#include <xla/models/mnasnet.hpp>
#include <xla/models/mobilenet_v2.hpp>
#include <xla/models/resnet.hpp>
#include <xla/models/squeezenet.hpp>
#include <xla/models/vgg.hpp>
#include <xla/models/vit.hpp>
#include <xla/xla.hpp>

namespace models = xla::models;
namespace nn = xla::nn;

/// A network for small pictures, from 8 x 8 on.
struct SmallNet {
  nn::Conv2d<3, 1, 1> conv1{3, 32}, conv2{32, 64}, conv3{64, 64};
  nn::BatchNorm2d bn1{32}, bn2{64}, bn3{64};
  nn::AdaptiveAvgPool2d<2> pool;
  nn::Dropout dropout{0.2};
  nn::Linear fc{256, 10};

  constexpr auto operator()(const xla::Tensor<float, 4>& images) const {
    const auto strokes = xla::max_pool2d(xla::relu(bn1(conv1(images))), 2);
    const auto parts = xla::max_pool2d(xla::relu(bn2(conv2(strokes))), 2);
    return fc(dropout(xla::flatten<1>(pool(xla::relu(bn3(conv3(parts)))))));
  }
  XLA_MODULE(conv1, conv2, conv3, bn1, bn2, bn3, pool, dropout, fc)
};

/// A model by the name that command lines have for it: its type, and the images' size and the
/// highest rate of its training unless the options say otherwise.
template <class M>
struct Entry {
  using Model = models::AnyClasses<M>;
  static constexpr std::int64_t size = 224;
  static constexpr double lr = 1e-3;
};
struct small : Entry<SmallNet> {
  static constexpr std::int64_t size = 32;
  static constexpr double lr = 3e-3;
};
struct resnet18 : Entry<models::ResNet18<>> {};
struct resnet34 : Entry<models::ResNet34<>> {};
struct resnet50 : Entry<models::ResNet50<>> {};
struct resnext50_32x4d : Entry<models::ResNeXt50_32x4d<>> {};
struct alexnet : Entry<models::AlexNet<>> {
  static constexpr double lr = 1e-4;
};
struct vgg16 : Entry<models::VGG16<>> {
  static constexpr double lr = 1e-4;
};
struct squeezenet1_1 : Entry<models::SqueezeNet1_1<>> {
  static constexpr double lr = 3e-4;
};
struct mobilenet_v2 : Entry<models::MobileNetV2<>> {};
struct mnasnet1_0 : Entry<models::MNASNet1_0<>> {};
struct vit_b_16 : Entry<models::VisionTransformer<models::vit_b_16>> {
  static constexpr double lr = 3e-4;
};
