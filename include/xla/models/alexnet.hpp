// SPDX-License-Identifier: Apache-2.0
#pragma once

// AlexNet, by torchvision's names of members, so that its weights can be loaded by name.

#include "xla/nn/activation.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/conv.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/pool.hpp"
#include "xla/op/reshape.hpp"

namespace xla::models {

/// Images (batch, 3, height, width), at least 63 × 63 and designed for 224 × 224, to (batch,
/// classes); Hidden is the width of the two layers before. Krizhevsky (2014), "One weird trick for
/// parallelizing convolutional neural networks". Its state has the names of
/// torchvision.models.alexnet, whose weights load.
template <int Classes = 1000, int Hidden = 4096>
struct AlexNet {
  nn::Sequential<nn::Conv2d<11, 4, 2>, nn::ReLU, nn::MaxPool2d<3, 2>, nn::Conv2d<5, 1, 2>, nn::ReLU,
                 nn::MaxPool2d<3, 2>, nn::Conv2d<3, 1, 1>, nn::ReLU, nn::Conv2d<3, 1, 1>, nn::ReLU,
                 nn::Conv2d<3, 1, 1>, nn::ReLU, nn::MaxPool2d<3, 2>>
      features{{3, 64}, {},         {}, {64, 192},  {}, {}, {192, 384},
               {},      {384, 256}, {}, {256, 256}, {}, {}};
  nn::AdaptiveAvgPool2d<6> avgpool;
  nn::Sequential<nn::Dropout, nn::Linear, nn::ReLU, nn::Dropout, nn::Linear, nn::ReLU, nn::Linear>
      classifier;

  constexpr AlexNet() : AlexNet(0.5) {}
  /// With another dropout probability.
  constexpr explicit AlexNet(double dropout)
      : classifier{nn::Dropout{dropout}, {256 * 6 * 6, Hidden}, {},
                   nn::Dropout{dropout}, {Hidden, Hidden},      {},
                   {Hidden, Classes}} {}
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return classifier(flatten<1>(avgpool(features(x))));
  }
  XLA_MODULE(features, avgpool, classifier)
};

}  // namespace xla::models
