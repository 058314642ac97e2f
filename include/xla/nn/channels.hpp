// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers that shuffle or normalize channels, and Unfold and Fold. Not in xla.hpp.

#include <cstdint>

#include "xla/module.hpp"
#include "xla/op/derived/channels.hpp"
#include "xla/op/unfold.hpp"

namespace xla::nn {

/// channel_shuffle as a layer: nn::ChannelShuffle<2>.
template <std::int64_t Groups>
struct ChannelShuffle {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return channel_shuffle(x, Groups, loc);
  }
};

/// local_response_norm as a layer, of this many channels: nn::LocalResponseNorm<5>{.k = 2}.
template <std::int64_t Channels>
struct LocalResponseNorm {
  double alpha = 1e-4, beta = 0.75, k = 1;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return local_response_norm(x, Channels, {alpha, beta, k}, loc);
  }
  XLA_MODULE(alpha, beta, k)
};
/// How windows are placed, by PyTorch's names and in its order: nn::Unfold<3> is
/// nn::Unfold<nn::UnfoldConfig{.kernel_size = 3}>.
struct UnfoldConfig {
  HeightWidth kernel_size;
  HeightWidth dilation = 1;
  HeightWidth padding = 0;
  HeightWidth stride = 1;

  constexpr UnfoldOptions options() const { return {dilation, padding, stride}; }
};
/// unfold as a layer.
template <UnfoldConfig C>
struct BasicUnfold {
  template <class T, int R>
  constexpr auto operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return unfold(x, C.kernel_size, C.options(), loc);
  }
};
template <auto... C>
using Unfold = BasicUnfold<UnfoldConfig{C...}>;

/// fold as a layer: nn::Fold<HeightWidth{4, 5}, 3>, or with an UnfoldConfig.
template <HeightWidth OutputSize, UnfoldConfig C>
struct BasicFold {
  template <class T, int R>
  constexpr auto operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return fold(x, {OutputSize.height, OutputSize.width}, C.kernel_size, C.options(), loc);
  }
};
template <HeightWidth OutputSize, auto... C>
using Fold = BasicFold<OutputSize, UnfoldConfig{C...}>;

}  // namespace xla::nn
