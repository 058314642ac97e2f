// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include <xla/xla.hpp>

namespace nn = xla::nn;

// He, Zhang, Ren and Sun (2015), "Deep residual learning for image recognition", table 1, column
// 18-layer; members are called as in torchvision.models.resnet18, whose weights fit.

template <int Kernel, int Stride = 1>
using Conv = nn::Conv2d<nn::Conv2dConfig{
    .kernel_size = Kernel, .stride = Stride, .padding = Kernel / 2, .bias = false}>;

/// The way past a block: a projection where channels or sizes change, else nothing.
template <int In, int Out, int Stride>
constexpr auto shortcut() {
  if constexpr (In == Out && Stride == 1) return nn::Identity{};
  else return nn::Sequential{Conv<1, Stride>{In, Out}, nn::BatchNorm2d{Out}};
}

template <int In, int Out, int Stride = 1>
struct BasicBlock {
  Conv<3, Stride> conv1{In, Out};
  nn::BatchNorm2d bn1{Out};
  Conv<3> conv2{Out, Out};
  nn::BatchNorm2d bn2{Out};
  decltype(shortcut<In, Out, Stride>()) downsample = shortcut<In, Out, Stride>();
  constexpr auto operator()(xla::Tensor<float, 4> x) const {
    return xla::relu(bn2(conv2(xla::relu(bn1(conv1(x))))) + downsample(x));
  }
  XLA_MODULE(conv1, bn1, conv2, bn2, downsample)
};

template <int In, int Out, int Stride>
using Layer = nn::Sequential<BasicBlock<In, Out, Stride>, BasicBlock<Out, Out>>;

/// Images (batch, 3, height, width) to (batch, Classes).
template <int Classes = 1000>
struct ResNet18 {
  Conv<7, 2> conv1{3, 64};
  nn::BatchNorm2d bn1{64};
  nn::MaxPool2d<3, 2, 1> maxpool;
  Layer<64, 64, 1> layer1;
  Layer<64, 128, 2> layer2;
  Layer<128, 256, 2> layer3;
  Layer<256, 512, 2> layer4;
  nn::AdaptiveAvgPool2d<1> avgpool;
  nn::Linear fc{512, Classes};

  constexpr ResNet18() {
    if (std::is_constant_evaluated()) return;
    xla::for_each_parameter(*this, [](auto& p) {
      if constexpr (std::remove_cvref_t<decltype(p)>::rank == 4)
        nn::init::kaiming_normal_(
            p, {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::relu});
    });
  }
  constexpr auto operator()(xla::Tensor<float, 4> x) const {
    auto stem = maxpool(xla::relu(bn1(conv1(x))));
    return fc(xla::flatten<1>(avgpool(layer4(layer3(layer2(layer1(stem)))))));
  }
  XLA_MODULE(conv1, bn1, maxpool, layer1, layer2, layer3, layer4, avgpool, fc)
};
