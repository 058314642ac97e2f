// SPDX-License-Identifier: Apache-2.0
#pragma once

// MNASNet, by torchvision's names of members, so that its weights can be loaded by name.

#include <tuple>

#include "xla/models/parts.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/reduce.hpp"

namespace xla::models {

/// The structure of a MNASNet.
struct MNASNetConfig {
  double alpha = 1;                    ///< the multiple of the paper's channels
  int blocks[6] = {3, 3, 3, 2, 4, 1};  ///< of each stack
  int num_classes = 1000;
};

namespace detail {

/// Batch normalization with the momentum of the paper.
constexpr auto mnas_norm(int channels) { return nn::BatchNorm2d{channels, 1e-5, 1 - 0.9997}; }

/// An inverted residual: expands the channels, filters each, and reduces them again, with a
/// shortcut if sizes stay. Tan et al. (2019), figure 7 b.
template <int In, int Out, int Kernel, int Stride, int Expansion>
struct MNASBlock {
  static constexpr int hidden = In * Expansion;
  nn::Sequential<Conv<1>, nn::BatchNorm2d, nn::ReLU, Conv<Kernel, Stride, hidden>, nn::BatchNorm2d,
                 nn::ReLU, Conv<1>, nn::BatchNorm2d>
      layers{{In, hidden},  mnas_norm(hidden), {}, {hidden, hidden}, mnas_norm(hidden), {},
             {hidden, Out}, mnas_norm(Out)};

  constexpr auto operator()(const Tensor<float, 4>& x) const {
    if constexpr (In == Out && Stride == 1) return layers(x) + x;
    else return layers(x);
  }
  XLA_MODULE(layers)
};

/// A stack of blocks, the first of which changes sizes.
template <int N, int In, int Out, int Kernel, int Stride, int Expansion>
using MNASStack = Stack<N, MNASBlock<In, Out, Kernel, Stride, Expansion>,
                        MNASBlock<Out, Out, Kernel, 1, Expansion>>;

}  // namespace detail

/// Images (batch, 3, height, width) to (batch, classes); sizes from 1 × 1 on, designed for 224 ×
/// 224. Tan et al. (2019), "MnasNet: platform-aware neural architecture search for mobile", B1. Its
/// state has the names of torchvision.models.mnasnet, whose weights load. In the reverse direction
/// torchvision asks for a version, which no safetensors file has: state =
/// OrderedDict(load_file(path)), then state._metadata = {"": {"version": 2}}.
template <MNASNetConfig C>
class MNASNet {
  static constexpr int width[8] = {
      detail::rounded_width(32 * C.alpha),  detail::rounded_width(16 * C.alpha),
      detail::rounded_width(24 * C.alpha),  detail::rounded_width(40 * C.alpha),
      detail::rounded_width(80 * C.alpha),  detail::rounded_width(96 * C.alpha),
      detail::rounded_width(192 * C.alpha), detail::rounded_width(320 * C.alpha)};
  template <int I, int Kernel, int Stride, int Expansion>
  using Stack =
      detail::MNASStack<C.blocks[I], width[I + 1], width[I + 2], Kernel, Stride, Expansion>;

 public:
  nn::Sequential<detail::Conv<3, 2>, nn::BatchNorm2d, nn::ReLU, detail::Conv<3, 1, width[0]>,
                 nn::BatchNorm2d, nn::ReLU, detail::Conv<1>, nn::BatchNorm2d, Stack<0, 3, 2, 3>,
                 Stack<1, 5, 2, 3>, Stack<2, 5, 2, 6>, Stack<3, 3, 1, 6>, Stack<4, 5, 2, 6>,
                 Stack<5, 3, 1, 6>, detail::Conv<1>, nn::BatchNorm2d, nn::ReLU>
      layers{{3, width[0]},
             detail::mnas_norm(width[0]),
             {},
             {width[0], width[0]},
             detail::mnas_norm(width[0]),
             {},
             {width[0], width[1]},
             detail::mnas_norm(width[1]),
             {},
             {},
             {},
             {},
             {},
             {},
             {width[7], 1280},
             detail::mnas_norm(1280),
             {}};
  nn::Sequential<nn::Dropout, nn::Linear> classifier;

  constexpr MNASNet() : MNASNet(0.2) {}
  /// With another dropout probability.
  constexpr explicit MNASNet(double dropout)
      : classifier{nn::Dropout{dropout}, {1280, C.num_classes}} {
    if (__builtin_is_constant_evaluated()) return;
    init_convolutions(*this);
    auto& [weight, bias] = std::get<1>(classifier.layers);
    nn::init::kaiming_uniform_(
        weight, {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::sigmoid});
    nn::init::zeros_(bias);
  }
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return classifier(mean(layers(x), {2, 3}));
  }
  XLA_MODULE(layers, classifier)
};

template <int Classes = 1000>
using MNASNet1_0 = MNASNet<MNASNetConfig{.num_classes = Classes}>;

}  // namespace xla::models
