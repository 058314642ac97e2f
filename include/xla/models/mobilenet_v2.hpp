// SPDX-License-Identifier: Apache-2.0
#pragma once

// MobileNet-v2, by torchvision's names of members, so that its weights can be loaded by name.

#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include "xla/models/parts.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/pool.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/reshape.hpp"

namespace xla::models {

/// The structure of a MobileNet v2.
struct MobileNetV2Config {
  double width_mult = 1;                  ///< of all channels, but at least 1 of the last ones
  int blocks[7] = {1, 2, 3, 4, 3, 3, 1};  ///< of each row of the paper's table
  int num_classes = 1000;
};

namespace detail {

template <int Kernel, int Stride = 1, int Groups = 1>
constexpr auto conv_norm_relu6(int in, int out) {
  return nn::Sequential{Conv<Kernel, Stride, Groups>{in, out}, nn::BatchNorm2d{out}, nn::ReLU6{}};
}

/// Expands the channels Expansion times, filters each, and reduces them again.
template <int In, int Out, int Stride, int Expansion>
constexpr auto inverted_residual() {
  constexpr int hidden = In * Expansion;
  if constexpr (Expansion == 1)
    return nn::Sequential{conv_norm_relu6<3, Stride, hidden>(hidden, hidden), Conv<1>{hidden, Out},
                          nn::BatchNorm2d{Out}};
  else
    return nn::Sequential{conv_norm_relu6<1>(In, hidden),
                          conv_norm_relu6<3, Stride, hidden>(hidden, hidden), Conv<1>{hidden, Out},
                          nn::BatchNorm2d{Out}};
}

}  // namespace detail

/// An inverted residual: expands the channels, filters each, and reduces them again, with a
/// shortcut if sizes stay. Sandler et al. (2018), table 1.
template <int In, int Out, int Stride, int Expansion>
struct InvertedResidual {
  decltype(detail::inverted_residual<In, Out, Stride, Expansion>()) conv =
      detail::inverted_residual<In, Out, Stride, Expansion>();

  constexpr auto operator()(const Tensor<float, 4>& x) const {
    if constexpr (In == Out && Stride == 1) return x + conv(x);
    else return conv(x);
  }
  XLA_MODULE(conv)
};

namespace detail {

/// The blocks of a MobileNet v2 at its width, as numbers and as a type.
template <MobileNetV2Config C>
struct mobilenet_v2 {
  struct block {
    int in = 0, out = 0, stride = 1, expansion = 0;
  };
  static constexpr int first = rounded_width(32 * C.width_mult);
  static constexpr int last = rounded_width(1280 * (C.width_mult < 1 ? 1 : C.width_mult));

  /// Table 2 of the paper, a row for each block.
  static constexpr auto blocks() {
    constexpr block rows[7] = {{0, 16, 1, 1}, {0, 24, 2, 6},  {0, 32, 2, 6}, {0, 64, 2, 6},
                               {0, 96, 1, 6}, {0, 160, 2, 6}, {0, 320, 1, 6}};
    constexpr int count = C.blocks[0] + C.blocks[1] + C.blocks[2] + C.blocks[3] + C.blocks[4] +
                          C.blocks[5] + C.blocks[6];
    std::array<block, count> all{};
    std::size_t at = 0;
    for (int row = 0, in = first; row < 7; ++row)
      for (int i = 0; i < C.blocks[row]; ++i, ++at) {
        all[at] = rows[row];
        all[at].in = in;
        in = all[at].out = rounded_width(rows[row].out * C.width_mult);
        if (i > 0) all[at].stride = 1;
      }
    return all;
  }
  template <std::size_t... I>
  static constexpr auto features(std::index_sequence<I...>) {
    constexpr auto b = blocks();
    return nn::Sequential{conv_norm_relu6<3, 2>(3, first),
                          InvertedResidual<b[I].in, b[I].out, b[I].stride, b[I].expansion>{}...,
                          conv_norm_relu6<1>(b.back().out, last)};
  }
  static constexpr auto features() { return features(std::make_index_sequence<blocks().size()>{}); }
};

}  // namespace detail

/// Images (batch, 3, height, width) to (batch, classes); sizes from 1 × 1 on, designed for 224 ×
/// 224. Sandler, Howard, Zhu, Zhmoginov and Chen (2018), "MobileNetV2: inverted residuals and
/// linear bottlenecks". Its state has the names of torchvision.models.mobilenet_v2, whose weights
/// load.
template <MobileNetV2Config C>
struct BasicMobileNetV2 {
  decltype(detail::mobilenet_v2<C>::features()) features = detail::mobilenet_v2<C>::features();
  nn::AdaptiveAvgPool2d<1> avgpool;
  nn::Sequential<nn::Dropout, nn::Linear> classifier;

  constexpr BasicMobileNetV2() : BasicMobileNetV2(0.2) {}
  /// With another dropout probability.
  constexpr explicit BasicMobileNetV2(double dropout)
      : classifier{nn::Dropout{dropout}, {detail::mobilenet_v2<C>::last, C.num_classes}} {
    if (__builtin_is_constant_evaluated()) return;
    init_convolutions(*this);
    auto& [weight, bias] = std::get<1>(classifier.layers);
    nn::init::normal_(weight, 0, 0.01f);
    nn::init::zeros_(bias);
  }
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return classifier(flatten<1>(avgpool(features(x))));
  }
  XLA_MODULE(features, avgpool, classifier)
};

template <int Classes = 1000>
using MobileNetV2 = BasicMobileNetV2<MobileNetV2Config{.num_classes = Classes}>;

}  // namespace xla::models
