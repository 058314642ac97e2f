// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conv3d and ConvTranspose3d as layers. Not in xla.hpp.

#include <cstdint>

#include "xla/nn/conv.hpp"
#include "xla/op/derived/convolution3d.hpp"

namespace xla::nn {

/// Conv2dConfig, of volumes: nn::Conv3d<3, 2, 1> has kernels of 3 at every other position of
/// volumes with zeros around them.
struct Conv3dConfig {
  DepthHeightWidth kernel_size;
  DepthHeightWidth stride = 1;    ///< from one position of the kernel to the next
  DepthHeightWidth padding = 0;   ///< zeros before and after each axis
  DepthHeightWidth dilation = 1;  ///< from one element of the kernel to the next
  std::int64_t groups = 1;        ///< of channels, each with outputs of its own
  bool bias = true;
};
/// The same for a transposed convolution.
struct ConvTranspose3dConfig {
  DepthHeightWidth kernel_size;
  DepthHeightWidth stride = 1;          ///< from one position of the kernel to the next
  DepthHeightWidth padding = 0;         ///< cut off before and after each axis
  DepthHeightWidth output_padding = 0;  ///< more at the end of each axis
  std::int64_t groups = 1;              ///< of channels, each with outputs of its own
  bool bias = true;
  DepthHeightWidth dilation = 1;  ///< from one element of the kernel to the next
};

namespace detail {
template <class Weight>
constexpr Weight make_volume_kernel(std::int64_t first, std::int64_t second,
                                    const DepthHeightWidth& kernel) {
  return Weight({first, second, kernel.depth, kernel.height, kernel.width});
}
/// What the compiler knows of a weight from its layer's type alone.
template <class Weight>
constexpr Weight open_volume_kernel(const DepthHeightWidth& kernel) {
  if (__builtin_is_constant_evaluated()) return make_volume_kernel<Weight>(-1, -1, kernel);
  return {};
}
}  // namespace detail

/// The cross-correlation of volumes (N, in, depth, height, width) with a weight, plus a bias, as
/// torch.nn.Conv3d, with its initialisation. The numbers of inputs and outputs are multiples of the
/// groups, or it is an xla::error. Sizes that do not match are a shape_error.
template <class T, Conv3dConfig C>
struct BasicConvolution3d {
  static_assert(C.groups > 0, "xla::nn: a convolution has at least one group");
  using value_type = T;
  using bias_state = detail::state_if<C.bias, Parameter<T, 1>>;
  Parameter<T, 5> weight;  ///< (out, in / groups, kernel depth, height, width)
  bias_state bias;         ///< (out)

  constexpr BasicConvolution3d()
      : weight(detail::open_volume_kernel<Parameter<T, 5>>(C.kernel_size)) {}
  constexpr BasicConvolution3d(std::int64_t in, std::int64_t out)
      : weight(detail::make_volume_kernel<Parameter<T, 5>>(out, in / C.groups, C.kernel_size)),
        bias(detail::make_state<bias_state>({out})) {
    detail::check_groups<T>("nn::Conv3d", in, out, C.groups);
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// As nn::Conv2d's.
  void reset_parameters() { detail::reset_kernel(weight, bias); }
  constexpr Tensor<T, 5> operator()(const Tensor<T, 5>& x, caller loc = here()) const {
    constexpr Conv3dOptions how{C.stride, C.padding, C.dilation, C.groups};
    if constexpr (C.bias) return conv3d<T>(x, weight, bias, how, loc);
    else return conv3d<T>(x, weight, how, loc);
  }
  XLA_MODULE(weight, bias)
};
template <class T, auto... C>
using BasicConv3d = BasicConvolution3d<T, Conv3dConfig{C...}>;
template <auto... C>
using Conv3d = BasicConv3d<float, C...>;

/// What a convolution does to its input's gradient, of volumes, as torch.nn.ConvTranspose3d. Errors
/// as of Conv3d.
template <class T, ConvTranspose3dConfig C>
struct BasicConvolutionTranspose3d {
  static_assert(C.groups > 0, "xla::nn: a convolution has at least one group");
  using value_type = T;
  using bias_state = detail::state_if<C.bias, Parameter<T, 1>>;
  Parameter<T, 5> weight;  ///< (in, out / groups, kernel depth, height, width)
  bias_state bias;         ///< (out)

  constexpr BasicConvolutionTranspose3d()
      : weight(detail::open_volume_kernel<Parameter<T, 5>>(C.kernel_size)) {}
  constexpr BasicConvolutionTranspose3d(std::int64_t in, std::int64_t out)
      : weight(detail::make_volume_kernel<Parameter<T, 5>>(in, out / C.groups, C.kernel_size)),
        bias(detail::make_state<bias_state>({out})) {
    detail::check_groups<T>("nn::ConvTranspose3d", in, out, C.groups);
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// As nn::ConvTranspose2d's.
  void reset_parameters() { detail::reset_kernel(weight, bias); }
  constexpr Tensor<T, 5> operator()(const Tensor<T, 5>& x, caller loc = here()) const {
    constexpr ConvTranspose3dOptions how{C.stride, C.padding, C.output_padding, C.groups,
                                         C.dilation};
    if constexpr (C.bias) return conv_transpose3d<T>(x, weight, bias, how, loc);
    else return conv_transpose3d<T>(x, weight, how, loc);
  }
  XLA_MODULE(weight, bias)
};
template <class T, auto... C>
using BasicConvTranspose3d = BasicConvolutionTranspose3d<T, ConvTranspose3dConfig{C...}>;
template <auto... C>
using ConvTranspose3d = BasicConvTranspose3d<float, C...>;

}  // namespace xla::nn
