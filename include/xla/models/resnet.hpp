// SPDX-License-Identifier: Apache-2.0
#pragma once

// ResNet, Wide ResNet and ResNeXt, by torchvision's names of members, so that weights can be
// loaded by name.

#include <tuple>
#include <type_traits>

#include "xla/models/parts.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/pool.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/reshape.hpp"

namespace xla::models {

/// The structure of a residual network, by the names of torchvision's arguments.
struct ResNetConfig {
  int layers[4];            ///< blocks of each stage
  bool bottleneck = false;  ///< blocks of three convolutions with fourfold outputs, else of two
  /// Runs a stage's equal blocks, if there are at least four, as a loop of
  /// <xla/loop/scan_layers.hpp>, which the program includes. It pays with many blocks.
  bool scan_layers = false;
  int groups = 1;            ///< of the 3 × 3 convolutions of bottlenecks
  int width_per_group = 64;  ///< their channels in the first stage; each stage doubles them
  int num_classes = 1000;
};

namespace detail {

/// The shortcut of a block: a projection if channels or sizes change, else nothing.
template <int In, int Out, int Stride>
constexpr auto shortcut() {
  if constexpr (In == Out && Stride == 1) return nn::Identity{};
  else return nn::Sequential{Conv<1, Stride>{In, Out}, nn::BatchNorm2d{Out}};
}

}  // namespace detail

/// Two 3 × 3 convolutions and the shortcut. He et al. (2015), figure 5 left.
template <int In, int Out, int Stride = 1>
struct BasicBlock {
  detail::Conv<3, Stride> conv1{In, Out};
  nn::BatchNorm2d bn1{Out};
  detail::Conv<3> conv2{Out, Out};
  nn::BatchNorm2d bn2{Out};
  decltype(detail::shortcut<In, Out, Stride>()) downsample = detail::shortcut<In, Out, Stride>();

  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + downsample(x));
  }
  XLA_MODULE(conv1, bn1, conv2, bn2, downsample)
};

/// A 3 × 3 convolution of Width channels in groups between two of 1 × 1, and the shortcut. He
/// et al. (2015), figure 5 right, with the stride in the middle as in torchvision; with groups Xie
/// et al. (2017), figure 3c.
template <int In, int Out, int Stride, int Width, int Groups>
struct Bottleneck {
  detail::Conv<1> conv1{In, Width};
  nn::BatchNorm2d bn1{Width};
  detail::Conv<3, Stride, Groups> conv2{Width, Width};
  nn::BatchNorm2d bn2{Width};
  detail::Conv<1> conv3{Width, Out};
  nn::BatchNorm2d bn3{Out};
  decltype(detail::shortcut<In, Out, Stride>()) downsample = detail::shortcut<In, Out, Stride>();

  constexpr auto operator()(const Tensor<float, 4>& x) const {
    const auto narrow = relu(bn2(conv2(relu(bn1(conv1(x))))));
    return relu(bn3(conv3(narrow)) + downsample(x));
  }
  XLA_MODULE(conv1, bn1, conv2, bn2, conv3, bn3, downsample)
};

namespace detail {

/// The sequence of blocks that is stage S, and its numbers of input and output channels.
template <ResNetConfig C, int S>
struct resnet_stage {
  static constexpr int planes = 64 << S, expansion = C.bottleneck ? 4 : 1;
  static constexpr int out = planes * expansion, in = S == 0 ? 64 : out / 2;

  template <int In, int Stride>
  static constexpr auto block() {
    constexpr int width = planes * C.width_per_group / 64 * C.groups;
    if constexpr (C.bottleneck)
      return std::type_identity<Bottleneck<In, out, Stride, width, C.groups>>{};
    else return std::type_identity<BasicBlock<In, out, Stride>>{};
  }
  using first = typename decltype(block < in, S == 0 ? 1 : 2 > ())::type;
  using next = typename decltype(block<out, 1>())::type;
  using type = Stack<C.layers[S], first, next>;
};

/// A stage applied to x; with Scan the blocks after the first, which differs from them, are a loop.
template <bool Scan, class First, class... Next>
constexpr auto run_stage(const nn::Sequential<First, Next...>& stage, const Tensor<float, 4>& x) {
  if constexpr (Scan && sizeof...(Next) >= 4)
    return std::apply(
        [&](const First& first, const Next&... next) {
          constexpr nn::detail::layer_calls as_loop{.scan = true};
          return nn::detail::through_layers<as_loop>(std::tie(next...), first(x));
        },
        stage.layers);
  else return stage(x);
}

}  // namespace detail

/// Images (batch, 3, height, width) to (batch, classes); sizes from 1 × 1 on, designed for 224 ×
/// 224. He, Zhang, Ren and Sun (2015), "Deep residual learning for image recognition", table 1;
/// with groups Xie, Girshick, Dollár, Tu and He (2017), "Aggregated residual transformations". Its
/// state has the names of torchvision.models.resnet, whose weights load.
template <ResNetConfig C>
struct ResNet {
  static_assert(C.bottleneck || (C.groups == 1 && C.width_per_group == 64),
                "xla::models::ResNet: groups and width_per_group are for bottlenecks");
  template <int S>
  using Stage = typename detail::resnet_stage<C, S>::type;

  detail::Conv<7, 2> conv1{3, 64};
  nn::BatchNorm2d bn1{64};
  nn::MaxPool2d<3, 2, 1> maxpool;
  Stage<0> layer1;
  Stage<1> layer2;
  Stage<2> layer3;
  Stage<3> layer4;
  nn::AdaptiveAvgPool2d<1> avgpool;
  nn::Linear fc{detail::resnet_stage<C, 3>::out, C.num_classes};

  constexpr ResNet() {
    if (!__builtin_is_constant_evaluated()) init_convolutions(*this);
  }
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    constexpr bool scan = C.scan_layers;
    const auto stem = maxpool(relu(bn1(conv1(x))));
    const auto narrow = detail::run_stage<scan>(layer2, detail::run_stage<scan>(layer1, stem));
    const auto last = detail::run_stage<scan>(layer4, detail::run_stage<scan>(layer3, narrow));
    return fc(flatten<1>(avgpool(last)));
  }
  XLA_MODULE(conv1, bn1, maxpool, layer1, layer2, layer3, layer4, avgpool, fc)
};

template <int Classes = 1000>
using ResNet18 = ResNet<ResNetConfig{.layers = {2, 2, 2, 2}, .num_classes = Classes}>;
template <int Classes = 1000>
using ResNet34 = ResNet<ResNetConfig{.layers = {3, 4, 6, 3}, .num_classes = Classes}>;
template <int Classes = 1000>
using ResNet50 =
    ResNet<ResNetConfig{.layers = {3, 4, 6, 3}, .bottleneck = true, .num_classes = Classes}>;
template <int Classes = 1000>
using ResNet101 =
    ResNet<ResNetConfig{.layers = {3, 4, 23, 3}, .bottleneck = true, .num_classes = Classes}>;
template <int Classes = 1000>
using ResNet152 =
    ResNet<ResNetConfig{.layers = {3, 8, 36, 3}, .bottleneck = true, .num_classes = Classes}>;
/// torchvision's resnext50_32x4d.
template <int Classes = 1000>
using ResNeXt50_32x4d = ResNet<ResNetConfig{.layers = {3, 4, 6, 3},
                                            .bottleneck = true,
                                            .groups = 32,
                                            .width_per_group = 4,
                                            .num_classes = Classes}>;

}  // namespace xla::models
