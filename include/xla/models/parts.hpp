// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by several networks of this folder: initialisation, widths, heads. Programs do not include
// it themselves.

#include <cstddef>
#include <type_traits>
#include <utility>

#include "xla/nn/containers.hpp"
#include "xla/nn/conv.hpp"
#include "xla/nn/init.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reshape.hpp"

/// Published networks, by the names of torchvision, timm and Hugging Face: one file per family,
/// with their common parts here.
namespace xla::models {

/// Gives every convolution's weight normal numbers that keep the variance of gradients where relu
/// follows. He et al. (2015).
template <class Model>
void init_convolutions(Model& model) {
  xla::for_each_parameter(model, [](auto& p) {
    if constexpr (std::remove_cvref_t<decltype(p)>::rank == 4)
      nn::init::kaiming_normal_(
          p, {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::relu});
  });
}

namespace detail {

/// A convolution that is followed by batch normalization (no bias), padded so that a stride of 1
/// keeps the sizes.
template <int Kernel, int Stride = 1, int Groups = 1>
using Conv = nn::Conv2d<nn::Conv2dConfig{.kernel_size = Kernel,
                                         .stride = Stride,
                                         .padding = Kernel / 2,
                                         .groups = Groups,
                                         .bias = false}>;

template <class T, std::size_t>
using repeated = T;
template <class First, class Next, std::size_t... I>
nn::Sequential<First, repeated<Next, I>...> stack(std::index_sequence<I...>);

/// N modules in a sequence: First, then Next for all others.
template <int N, class First, class Next>
using Stack = decltype(stack<First, Next>(std::make_index_sequence<N - 1>{}));

/// The multiple of 8 that is nearest to a number of channels, and at least nine tenths of it.
constexpr int rounded_width(double channels) {
  const int nearest = static_cast<int>(channels + 4) / 8 * 8;
  const int width = nearest < 8 ? 8 : nearest;
  return width < 0.9 * channels ? width + 8 : width;
}

/// (batch, sequence, Features) to (batch, Heads, sequence, Features / Heads).
template <int Heads, int Features>
constexpr auto split_heads(const Tensor<float, 3>& x) {
  return transpose(reshape(x, {x.size(0), x.size(1), Heads, Features / Heads}), 1, 2);
}
/// The reverse.
template <int Features>
constexpr auto join_heads(const Tensor<float, 4>& x) {
  return reshape(transpose(x, 1, 2), {x.size(0), x.size(2), Features});
}

}  // namespace detail

}  // namespace xla::models
