// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pools of volumes, and pools by norms, as layers. Not in xla.hpp.

#include <cstdint>

#include "xla/module.hpp"
#include "xla/op/derived/volumes.hpp"

namespace xla::nn {

/// MaxPool2dConfig, of volumes.
struct MaxPool3dConfig {
  DepthHeightWidth kernel_size;
  PoolStride<DepthHeightWidth> stride = none;  ///< none: the kernel's size
  DepthHeightWidth padding = 0;                ///< on all sides
  DepthHeightWidth dilation = 1;
  bool ceil_mode = false;  ///< windows that reach beyond the volume count, too
};
/// AvgPool2dConfig, of volumes.
struct AvgPool3dConfig {
  DepthHeightWidth kernel_size;
  PoolStride<DepthHeightWidth> stride = none;
  DepthHeightWidth padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::int64_t divisor_override = 0;  ///< sums are divided by this instead; 0: by their number
};

/// max_pool3d as a layer.
template <MaxPool3dConfig C>
struct BasicMaxPool3d {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    constexpr MaxPool3dOptions how{C.stride, C.padding, C.dilation, C.ceil_mode};
    return max_pool3d(x, C.kernel_size, how, loc);
  }
};
template <auto... C>
using MaxPool3d = BasicMaxPool3d<MaxPool3dConfig{C...}>;

/// avg_pool3d as a layer.
template <AvgPool3dConfig C>
struct BasicAvgPool3d {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    constexpr AvgPool3dOptions how{C.stride, C.padding, C.ceil_mode, C.count_include_pad,
                                   C.divisor_override};
    return avg_pool3d(x, C.kernel_size, how, loc);
  }
};
template <auto... C>
using AvgPool3d = BasicAvgPool3d<AvgPool3dConfig{C...}>;

/// The mean of each of Depth × Height × Width equal parts of a volume; xla::none keeps the volume's
/// size.
template <auto Depth, auto Height = Depth, auto Width = Height>
struct AdaptiveAvgPool3d {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return adaptive_avg_pool3d(x, {Depth, Height, Width}, loc);
  }
};
/// The largest element of each such part.
template <auto Depth, auto Height = Depth, auto Width = Height>
struct AdaptiveMaxPool3d {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return adaptive_max_pool3d(x, {Depth, Height, Width}, loc);
  }
};

/// lp_pool1d as a layer: nn::LPPool1d<3>{.norm_type = 2}, of kernels of 3; Stride 0 is the kernel's
/// size.
template <std::int64_t Kernel, std::int64_t Stride = 0, bool CeilMode = false>
struct LPPool1d {
  double norm_type = 2;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return lp_pool1d(x, norm_type, Kernel, {Stride == 0 ? Kernel : Stride, CeilMode}, loc);
  }
  XLA_MODULE(norm_type)
};
/// The same for images, and of volumes: nn::LPPool2d<HeightWidth{3, 2}>.
template <HeightWidth Kernel, HeightWidth Stride = Kernel, bool CeilMode = false>
struct LPPool2d {
  double norm_type = 2;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return lp_pool2d(x, norm_type, Kernel, {Stride, CeilMode}, loc);
  }
  XLA_MODULE(norm_type)
};
template <DepthHeightWidth Kernel, DepthHeightWidth Stride = Kernel, bool CeilMode = false>
struct LPPool3d {
  double norm_type = 2;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return lp_pool3d(x, norm_type, Kernel, {Stride, CeilMode}, loc);
  }
  XLA_MODULE(norm_type)
};

}  // namespace xla::nn
