// SPDX-License-Identifier: Apache-2.0
#pragma once

// VGG with and without batch norms, by torchvision's names of members, so that weights can be
// loaded by name.

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "xla/models/parts.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/pool.hpp"
#include "xla/op/reshape.hpp"

namespace xla::models {

/// The structure of a VGG network.
struct VGGConfig {
  int convolutions[5];                         ///< before each of the pools
  int channels[5] = {64, 128, 256, 512, 512};  ///< of these convolutions
  int hidden = 4096;                           ///< of the two linear layers before the last
  int num_classes = 1000;
};

namespace detail {

/// A convolution, what follows it, or the pool that ends a stage.
struct vgg_layer {
  enum { convolution, activation, pool } kind = pool;
  int in = 0, out = 0;
};
template <VGGConfig C>
constexpr auto vgg_layers() {
  constexpr int count = 5 + 2 * (C.convolutions[0] + C.convolutions[1] + C.convolutions[2] +
                                 C.convolutions[3] + C.convolutions[4]);
  std::array<vgg_layer, count> all{};
  std::size_t at = 0;
  for (int stage = 0, in = 3; stage < 5; ++stage, ++at)
    for (int i = 0; i < C.convolutions[stage]; ++i, in = C.channels[stage]) {
      all[at++] = {vgg_layer::convolution, in, C.channels[stage]};
      all[at++].kind = vgg_layer::activation;
    }
  return all;
}
template <vgg_layer L>
constexpr auto make_vgg_layer() {
  if constexpr (L.kind == vgg_layer::convolution) return nn::Conv2d<3, 1, 1>{L.in, L.out};
  else if constexpr (L.kind == vgg_layer::activation) return nn::ReLU{};
  else return nn::MaxPool2d<2>{};
}
template <VGGConfig C, std::size_t... I>
constexpr auto vgg_features(std::index_sequence<I...>) {
  constexpr auto layers = vgg_layers<C>();
  return nn::Sequential{make_vgg_layer<layers[I]>()...};
}
template <VGGConfig C>
constexpr auto vgg_features() {
  return vgg_features<C>(std::make_index_sequence<vgg_layers<C>().size()>{});
}

}  // namespace detail

/// Images (batch, 3, height, width), at least 32 × 32 and designed for 224 × 224, to (batch,
/// classes). Simonyan and Zisserman (2014), "Very deep convolutional networks for large-scale image
/// recognition", table 1. Its state has the names of torchvision.models.vgg, whose weights load.
template <VGGConfig C>
struct VGG {
  decltype(detail::vgg_features<C>()) features = detail::vgg_features<C>();
  nn::AdaptiveAvgPool2d<7> avgpool;
  nn::Sequential<nn::Linear, nn::ReLU, nn::Dropout, nn::Linear, nn::ReLU, nn::Dropout, nn::Linear>
      classifier;

  constexpr VGG() : VGG(0.5) {}
  /// With another dropout probability.
  constexpr explicit VGG(double dropout)
      : classifier{{C.channels[4] * 7 * 7, C.hidden},
                   {},
                   nn::Dropout{dropout},
                   {C.hidden, C.hidden},
                   {},
                   nn::Dropout{dropout},
                   {C.hidden, C.num_classes}} {
    if (__builtin_is_constant_evaluated()) return;
    init_convolutions(*this);
    xla::for_each_parameter(*this, [](auto& p) {
      constexpr int rank = std::remove_cvref_t<decltype(p)>::rank;
      if constexpr (rank == 2) nn::init::normal_(p, 0, 0.01f);
      if constexpr (rank == 1) nn::init::zeros_(p);
    });
  }
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return classifier(flatten<1>(avgpool(features(x))));
  }
  XLA_MODULE(features, avgpool, classifier)
};

template <int Classes = 1000>
using VGG11 = VGG<VGGConfig{.convolutions = {1, 1, 2, 2, 2}, .num_classes = Classes}>;
template <int Classes = 1000>
using VGG13 = VGG<VGGConfig{.convolutions = {2, 2, 2, 2, 2}, .num_classes = Classes}>;
template <int Classes = 1000>
using VGG16 = VGG<VGGConfig{.convolutions = {2, 2, 3, 3, 3}, .num_classes = Classes}>;
template <int Classes = 1000>
using VGG19 = VGG<VGGConfig{.convolutions = {2, 2, 4, 4, 4}, .num_classes = Classes}>;

}  // namespace xla::models
