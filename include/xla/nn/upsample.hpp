// SPDX-License-Identifier: Apache-2.0
#pragma once

// nn::Upsample. The function is interpolate(), op/derived/interpolate.hpp.

#include <cstdint>

#include "xla/op/derived/interpolate.hpp"

namespace xla::nn {

/// How images grow, by PyTorch's names and in its order: nn::Upsample<28> makes images of 28 × 28,
/// nn::Upsample<nn::UpsampleConfig{.scale_factor = 2, .mode = Interpolation::bilinear}> doubles
/// their size. Numbers are integers, {height, width} or one for both; interpolate() takes
/// fractional ones.
struct UpsampleConfig {
  HeightWidth size = 0;          ///< either this
  HeightWidth scale_factor = 0;  ///< or this
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;  ///< for linear, bilinear and bicubic: corners keep their values
};

/// interpolate as a layer: for images (batch, channels, height, width), or for signals (batch,
/// channels, length), whose length is the width.
template <UpsampleConfig C>
struct BasicUpsample {
  static_assert((C.size == HeightWidth(0)) != (C.scale_factor == HeightWidth(0)),
                "xla::nn::Upsample: give either a size or a scale_factor");

  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    InterpolateOptions how{.mode = C.mode, .align_corners = C.align_corners};
    if constexpr (C.size == HeightWidth(0))
      how.scale_factor = {static_cast<double>(C.scale_factor.height),
                          static_cast<double>(C.scale_factor.width)};
    else how.size = {C.size.height, C.size.width};
    return interpolate(x, how, loc);
  }
};
template <auto... C>
using Upsample = BasicUpsample<UpsampleConfig{C...}>;
/// Images scaled by a factor, by PyTorch's names: repeated pixels, or bilinear interpolation
/// between aligned corners.
template <HeightWidth ScaleFactor>
using UpsamplingNearest2d = BasicUpsample<UpsampleConfig{.scale_factor = ScaleFactor}>;
template <HeightWidth ScaleFactor>
using UpsamplingBilinear2d = BasicUpsample<UpsampleConfig{
    .scale_factor = ScaleFactor, .mode = Interpolation::bilinear, .align_corners = true}>;

}  // namespace xla::nn
