// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pools of lines and images as layers. Volumes and norms are in volumes.hpp.

#include <cstdint>

#include "xla/nn/shape.hpp"
#include "xla/op/avg_pool.hpp"
#include "xla/op/max_pool.hpp"

namespace xla::nn {
namespace detail {

/// Whether a pool returns indices; refused without the header of max_pool2d_with_indices().
template <class T, bool Wanted>
constexpr bool returns_indices() {
  constexpr bool has = requires(const Tensor<T, 4>& x) { max_pool2d_with_indices(x, 2); };
  static_assert(has || !Wanted,
                "xla: pools that return indices need the header xla/nn/max_unpool.hpp");
  return has && Wanted;
}

}  // namespace detail

/// The structure of max pooling, by PyTorch's names and in its order, with its defaults:
/// nn::MaxPool2d<3, 2, 1> is nn::MaxPool2d<nn::MaxPool2dConfig{.kernel_size = 3, .stride = 2,
/// .padding = 1}>. In 2-d a number for each axis is {height, width}.
template <int D>
struct MaxPoolConfig {
  detail::per_axis<D> kernel_size;
  PoolStride<detail::per_axis<D>> stride = none;  ///< none: the kernel's size
  detail::per_axis<D> padding = 0;                ///< on both sides
  detail::per_axis<D> dilation = 1;
  bool return_indices = false;  ///< {values, indices}; needs xla/nn/max_unpool.hpp
  bool ceil_mode = false;       ///< windows that reach beyond the image count, too
};
using MaxPool1dConfig = MaxPoolConfig<1>;
using MaxPool2dConfig = MaxPoolConfig<2>;

/// The same for average pooling.
struct AvgPool1dConfig {
  std::int64_t kernel_size;
  PoolStride<std::int64_t> stride = none;
  std::int64_t padding = 0;  ///< on both sides, of zeros
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< the mean is over the padding, too
};
struct AvgPool2dConfig {
  HeightWidth kernel_size;
  PoolStride<HeightWidth> stride = none;
  HeightWidth padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::int64_t divisor_override = 0;  ///< sums are divided by this instead; 0: by their number
};

/// max_pool1d, or with two axes max_pool2d, as a layer.
template <int D, MaxPoolConfig<D> C>
struct BasicMaxPool {
  template <class T, int R>
  constexpr auto operator()(const Tensor<T, R>& x, caller loc = here()) const {
    constexpr MaxPoolOptions<detail::per_axis<D>> how{C.stride, C.padding, C.dilation, C.ceil_mode};
    constexpr bool indices = detail::returns_indices<T, C.return_indices>();
    if constexpr (D == 1 && indices) return max_pool1d_with_indices(x, C.kernel_size, how, loc);
    else if constexpr (indices) return max_pool2d_with_indices(x, C.kernel_size, how, loc);
    else if constexpr (D == 1) return max_pool1d(x, C.kernel_size, how, loc);
    else return max_pool2d(x, C.kernel_size, how, loc);
  }
};
template <auto... C>
using MaxPool1d = BasicMaxPool<1, MaxPool1dConfig{C...}>;
template <auto... C>
using MaxPool2d = BasicMaxPool<2, MaxPool2dConfig{C...}>;

/// avg_pool1d, or with two axes avg_pool2d, as a layer.
template <auto C>
struct BasicAvgPool {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    if constexpr (requires { C.divisor_override; }) {
      constexpr AvgPool2dOptions how{C.stride, C.padding, C.ceil_mode, C.count_include_pad,
                                     C.divisor_override};
      return avg_pool2d(x, C.kernel_size, how, loc);
    } else {
      constexpr AvgPool1dOptions how{C.stride, C.padding, C.ceil_mode, C.count_include_pad};
      return avg_pool1d(x, C.kernel_size, how, loc);
    }
  }
};
template <auto... C>
using AvgPool1d = BasicAvgPool<AvgPool1dConfig{C...}>;
template <auto... C>
using AvgPool2d = BasicAvgPool<AvgPool2dConfig{C...}>;

/// The mean of each of this many equal parts of a signal (…, length).
template <std::int64_t Length>
struct AdaptiveAvgPool1d {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return adaptive_avg_pool1d(x, Length, loc);
  }
};
/// The mean of each of Height × Width equal parts of an image; xla::none keeps the image's size.
template <auto Height, auto Width = Height>
struct AdaptiveAvgPool2d {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return adaptive_avg_pool2d(x, {Height, Width}, loc);
  }
};
/// The largest element of each of this many equal parts of a signal (…, length); with ReturnIndices
/// {values, indices}, which needs xla/nn/max_unpool.hpp.
template <std::int64_t Length, bool ReturnIndices = false>
struct AdaptiveMaxPool1d {
  template <class T, int R>
  constexpr auto operator()(const Tensor<T, R>& x, caller loc = here()) const {
    if constexpr (detail::returns_indices<T, ReturnIndices>())
      return adaptive_max_pool1d_with_indices(x, Length, loc);
    else return adaptive_max_pool1d(x, Length, loc);
  }
};
/// The largest element of each of Height × Width equal parts of an image; xla::none keeps the
/// image's size. With ReturnIndices {values, indices}, as above.
template <auto Height, auto Width = Height, bool ReturnIndices = false>
struct AdaptiveMaxPool2d {
  template <class T, int R>
  constexpr auto operator()(const Tensor<T, R>& x, caller loc = here()) const {
    if constexpr (detail::returns_indices<T, ReturnIndices>())
      return adaptive_max_pool2d_with_indices(x, {Height, Width}, loc);
    else return adaptive_max_pool2d(x, {Height, Width}, loc);
  }
};

}  // namespace xla::nn
