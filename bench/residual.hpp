// SPDX-License-Identifier: Apache-2.0
#pragma once

// The residual nets of the parts capture and specialise.

#include <array>

#include <xla/xla.hpp>

#include "step_fn.hpp"

namespace bench {

inline constexpr int width = 64;

/// Two layers with a shortcut.
struct Block {
  xla::nn::Linear fc1{width, width}, fc2{width, width};
  constexpr auto operator()(xla::Tensor<float, 2> h) const { return h + fc2(xla::relu(fc1(h))); }
  XLA_MODULE(fc1, fc2)
};

/// A net whose step grows with its depth and whose kernels do not.
template <int Blocks>
struct Residual {
  std::array<Block, Blocks> blocks;
  constexpr auto operator()(xla::Tensor<float, 2> h) const {
    for (const auto& block : blocks) h = block(h);
    return h;
  }
  XLA_MODULE(blocks)
};

}  // namespace bench
