// SPDX-License-Identifier: Apache-2.0
#pragma once

// SqueezeNet 1.1, by torchvision's names of members, so that its weights can be loaded by name.

#include <tuple>
#include <type_traits>

#include "xla/nn/activation.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/conv.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/pool.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/reshape.hpp"

namespace xla::models {

/// A 1 × 1 convolution to few channels, then one of 1 × 1 and one of 3 × 3, each with Expanded
/// outputs, side by side. Iandola et al. (2016), figure 1.
template <int In, int Squeezed, int Expanded>
struct Fire {
  nn::Conv2d<1> squeeze{In, Squeezed};
  nn::Conv2d<1> expand1x1{Squeezed, Expanded};
  nn::Conv2d<3, 1, 1> expand3x3{Squeezed, Expanded};

  constexpr auto operator()(const Tensor<float, 4>& x) const {
    const auto narrow = relu(squeeze(x));
    return cat({relu(expand1x1(narrow)), relu(expand3x3(narrow))}, 1);
  }
  XLA_MODULE(squeeze, expand1x1, expand3x3)
};

/// Images (batch, 3, height, width), at least 17 × 17 and designed for 224 × 224, to (batch,
/// classes). Iandola et al. (2016), "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters",
/// in its authors' version 1.1. Its state has the names of torchvision.models.squeezenet1_1, whose
/// weights load.
template <int Classes = 1000>
struct SqueezeNet1_1 {
  using Pool = nn::MaxPool2d<nn::MaxPool2dConfig{.kernel_size = 3, .stride = 2, .ceil_mode = true}>;

  nn::Sequential<nn::Conv2d<3, 2>, nn::ReLU, Pool, Fire<64, 16, 64>, Fire<128, 16, 64>, Pool,
                 Fire<128, 32, 128>, Fire<256, 32, 128>, Pool, Fire<256, 48, 192>,
                 Fire<384, 48, 192>, Fire<384, 64, 256>, Fire<512, 64, 256>>
      features{{3, 64}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  nn::Sequential<nn::Dropout, nn::Conv2d<1>, nn::ReLU, nn::AdaptiveAvgPool2d<1>> classifier;

  constexpr SqueezeNet1_1() : SqueezeNet1_1(0.5) {}
  /// With another dropout probability.
  constexpr explicit SqueezeNet1_1(double dropout)
      : classifier{nn::Dropout{dropout}, {512, Classes}, {}, {}} {
    if (__builtin_is_constant_evaluated()) return;
    xla::for_each_parameter(*this, [](auto& p) {
      if constexpr (std::remove_cvref_t<decltype(p)>::rank == 4) nn::init::kaiming_uniform_(p);
      else nn::init::zeros_(p);
    });
    nn::init::normal_(std::get<1>(classifier.layers).weight, 0, 0.01f);
  }
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return flatten<1>(classifier(features(x)));
  }
  XLA_MODULE(features, classifier)
};

}  // namespace xla::models
