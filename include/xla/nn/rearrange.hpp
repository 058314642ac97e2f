// SPDX-License-Identifier: Apache-2.0
#pragma once

// PixelShuffle, PixelUnshuffle and Unflatten as layers. Not in xla.hpp.

#include <cstdint>

#include "xla/op/derived/pixel_shuffle.hpp"
#include "xla/op/reshape.hpp"

namespace xla::nn {

/// pixel_shuffle as a layer: nn::PixelShuffle<2>.
template <std::int64_t UpscaleFactor>
struct PixelShuffle {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return pixel_shuffle(x, UpscaleFactor, loc);
  }
};

/// pixel_unshuffle as a layer.
template <std::int64_t DownscaleFactor>
struct PixelUnshuffle {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return pixel_unshuffle(x, DownscaleFactor, loc);
  }
};

/// An axis as several, whose sizes multiply to its own; one may be -1: nn::Unflatten<1, 3, 28, 28>.
template <int Axis, std::int64_t... Sizes>
struct Unflatten {
  static_assert(sizeof...(Sizes) > 0, "xla::nn::Unflatten: give the axis, then its sizes");
  template <class T, int R>
  constexpr Tensor<T, R - 1 + static_cast<int>(sizeof...(Sizes))> operator()(
      const Tensor<T, R>& x, caller loc = here()) const {
    return unflatten(x, Axis, {Size(Sizes)...}, loc);
  }
};

}  // namespace xla::nn
