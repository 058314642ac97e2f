// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conv1d, Conv2d and their transposes as layers. Volumes are in convolution3d.hpp.

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "xla/nn/init.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/derived/convolution.hpp"

namespace xla::nn {

/// The values beyond the border of an image that a convolution reads, by PyTorch's names.
enum class PaddingMode {
  zeros,
  reflect,    ///< the mirror image, without the first and the last element
  replicate,  ///< the first and the last element, repeated
  circular,   ///< the elements at the other end
};

/// The structure of a convolution, by PyTorch's names and in its order, with its defaults:
/// nn::Conv2d<3, 2, 1> is nn::Conv2d<nn::Conv2dConfig{.kernel_size = 3, .stride = 2, .padding =
/// 1}>. In 2-d a number for each axis is {height, width}.
template <int D>
struct ConvConfig {
  detail::per_axis<D> kernel_size;
  detail::per_axis<D> stride = 1;    ///< from one position of the kernel to the next
  ConvPadding<D> padding = 0;        ///< zeros before and after each axis; or same, or valid
  detail::per_axis<D> dilation = 1;  ///< from one element of the kernel to the next
  std::int64_t groups = 1;           ///< of channels, each with outputs of its own
  bool bias = true;
  PaddingMode padding_mode = PaddingMode::zeros;
};
using Conv1dConfig = ConvConfig<1>;
using Conv2dConfig = ConvConfig<2>;

/// The same for a transposed convolution.
template <int D>
struct ConvTransposeConfig {
  detail::per_axis<D> kernel_size;
  detail::per_axis<D> stride = 1;          ///< from one position of the kernel to the next
  detail::per_axis<D> padding = 0;         ///< cropped before and after each axis
  detail::per_axis<D> output_padding = 0;  ///< added at the end of each axis
  std::int64_t groups = 1;                 ///< of channels, each with outputs of its own
  bool bias = true;
  detail::per_axis<D> dilation = 1;  ///< from one element of the kernel to the next
};
using ConvTranspose1dConfig = ConvTransposeConfig<1>;
using ConvTranspose2dConfig = ConvTransposeConfig<2>;

namespace detail {

template <class = void>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_groups(const char* layer, std::int64_t in,
                                                          std::int64_t out, std::int64_t groups) {
  throw runtime_error(std::string(layer) + ": " + std::to_string(in) + " inputs and " +
                      std::to_string(out) + " outputs have to be multiples of groups " +
                      std::to_string(groups) + ", and at least that");
}

template <class T>
constexpr void check_groups(const char* layer, std::int64_t in, std::int64_t out,
                            std::int64_t groups) {
  if (in < groups || out < groups || in % groups != 0 || out % groups != 0)
    refuse_groups<T>(layer, in, out, groups);
}

template <class Weight>
constexpr Weight make_kernel(std::int64_t channels, std::int64_t each, const HeightWidth& kernel) {
  return Weight({channels, each, kernel.height, kernel.width});
}
template <class Weight>
constexpr Weight make_kernel(std::int64_t channels, std::int64_t each, std::int64_t kernel) {
  return Weight({channels, each, kernel});
}

/// A kernel with the sizes that the layer's type fixes, for the shape check in the compiler.
template <class Weight>
constexpr Weight open_kernel(const auto& kernel) {
  if (__builtin_is_constant_evaluated()) return make_kernel<Weight>(-1, -1, kernel);
  return {};
}

/// Extends signals or images x (batch, channels, …) at their borders by their own elements, by C's
/// padding.
template <int D, ConvConfig<D> C, class T, int R>
constexpr Tensor<T, R> padded(const Tensor<T, R>& x, caller loc) {
  static_assert(C.stride == per_axis<D>(1) || !C.padding.is_same,
                "xla::nn: padding = xla::tags::same needs stride 1");
  constexpr HeightWidth kernel = C.kernel_size, dilation = C.dilation, zeros = C.padding.zeros;
  const auto around = [](std::int64_t size, std::int64_t step, std::int64_t given) {
    const std::int64_t more = step * (size - 1);
    return C.padding.is_same ? Padding{more / 2, more - more / 2} : Padding{given, given};
  };
  Padding by[D + 2];
  if (D == 2) by[2] = around(kernel.height, dilation.height, zeros.height);
  by[D + 1] = around(kernel.width, dilation.width, zeros.width);
  constexpr PadMode mode = C.padding_mode == PaddingMode::reflect     ? PadMode::reflect
                           : C.padding_mode == PaddingMode::replicate ? PadMode::replicate
                                                                      : PadMode::circular;
  return pad(x, by, mode, loc);
}

template <class Weight, class Bias>
void reset_kernel(Weight& weight, Bias& bias) {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  if constexpr (!std::is_same_v<Bias, Identity>) {
    const double bound = 1 / std::sqrt(static_cast<double>(init::fans(weight).first));
    using T = typename Bias::value_type;
    init::uniform_(bias, static_cast<T>(-bound), static_cast<T>(bound));
  }
}

}  // namespace detail

/// The cross-correlation of (N, in, length), or with two axes of images (N, in, height, width),
/// with a weight, plus a bias, like torch.nn.Conv1d and Conv2d, with their initialisation. The
/// numbers of inputs and outputs are multiples of the groups, or it is an xla::error. Sizes that do
/// not match are a shape_error, as are, for a padding_mode other than zeros, images that are too
/// small for pad().
template <class T, int D, ConvConfig<D> C>
struct BasicConv {
  static_assert(C.groups > 0, "xla::nn: a convolution has at least one group");
  using value_type = T;
  using bias_state = detail::state_if<C.bias, Parameter<T, 1>>;
  Parameter<T, D + 2> weight;  ///< (out, in / groups, kernel) or (…, kernel height, kernel width)
  bias_state bias;             ///< (out)

  constexpr BasicConv() : weight(detail::open_kernel<Parameter<T, D + 2>>(C.kernel_size)) {}
  constexpr BasicConv(std::int64_t in, std::int64_t out)
      : weight(detail::make_kernel<Parameter<T, D + 2>>(out, in / C.groups, C.kernel_size)),
        bias(detail::make_state<bias_state>({out})) {
    detail::check_groups<T>(D == 1 ? "nn::Conv1d" : "nn::Conv2d", in, out, C.groups);
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// Uniform within one over the square root of the number of products in an output's sum, weight
  /// and bias (He et al. 2015, a = sqrt 5).
  void reset_parameters() { detail::reset_kernel(weight, bias); }
  template <class U, int R>
  constexpr Tensor<T, D + 2> operator()(const Tensor<U, R>& x, caller loc = here()) const {
    if constexpr (C.padding_mode != PaddingMode::zeros && R == D + 2)
      return convolve(detail::padded<D, C>(x, loc), tags::valid, loc);
    else return convolve(x, C.padding, loc);
  }
  XLA_MODULE(weight, bias)

 private:
  template <class U, int R>
  constexpr Tensor<T, D + 2> convolve(const Tensor<U, R>& x, const ConvPadding<D>& padding,
                                      caller loc) const {
    const ConvOptions<D> how{C.stride, padding, C.dilation, C.groups};
    if constexpr (D == 1 && C.bias) return conv1d(x, weight, bias, how, loc);
    else if constexpr (D == 1) return conv1d(x, weight, how, loc);
    else if constexpr (C.bias) return conv2d(x, weight, bias, how, loc);
    else return conv2d(x, weight, how, loc);
  }
};
template <class T, auto... C>
using BasicConv1d = BasicConv<T, 1, Conv1dConfig{C...}>;
template <class T, auto... C>
using BasicConv2d = BasicConv<T, 2, Conv2dConfig{C...}>;
template <auto... C>
using Conv1d = BasicConv1d<float, C...>;
template <auto... C>
using Conv2d = BasicConv2d<float, C...>;

/// The transpose of a convolution, its input's gradient: of (N, in, length), or with two axes of
/// images (N, in, height, width), plus a bias, like torch.nn.ConvTranspose1d and ConvTranspose2d,
/// with their initialisation. Errors as in Conv.
template <class T, int D, ConvTransposeConfig<D> C>
struct BasicConvTranspose {
  static_assert(C.groups > 0, "xla::nn: a convolution has at least one group");
  using value_type = T;
  using bias_state = detail::state_if<C.bias, Parameter<T, 1>>;
  Parameter<T, D + 2> weight;  ///< (in, out / groups, kernel) or (…, kernel height, kernel width)
  bias_state bias;             ///< (out)

  constexpr BasicConvTranspose()
      : weight(detail::open_kernel<Parameter<T, D + 2>>(C.kernel_size)) {}
  constexpr BasicConvTranspose(std::int64_t in, std::int64_t out)
      : weight(detail::make_kernel<Parameter<T, D + 2>>(in, out / C.groups, C.kernel_size)),
        bias(detail::make_state<bias_state>({out})) {
    detail::check_groups<T>(D == 1 ? "nn::ConvTranspose1d" : "nn::ConvTranspose2d", in, out,
                            C.groups);
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// As PyTorch: uniform within one over the square root of (out / groups) times the kernel's size.
  void reset_parameters() { detail::reset_kernel(weight, bias); }
  template <class U, int R>
  constexpr Tensor<T, D + 2> operator()(const Tensor<U, R>& x, caller loc = here()) const {
    constexpr ConvTransposeOptions<D> how{C.stride, C.padding, C.output_padding, C.groups,
                                          C.dilation};
    if constexpr (D == 1 && C.bias) return conv_transpose1d(x, weight, bias, how, loc);
    else if constexpr (D == 1) return conv_transpose1d(x, weight, how, loc);
    else if constexpr (C.bias) return conv_transpose2d(x, weight, bias, how, loc);
    else return conv_transpose2d(x, weight, how, loc);
  }
  XLA_MODULE(weight, bias)
};
template <class T, auto... C>
using BasicConvTranspose1d = BasicConvTranspose<T, 1, ConvTranspose1dConfig{C...}>;
template <class T, auto... C>
using BasicConvTranspose2d = BasicConvTranspose<T, 2, ConvTranspose2dConfig{C...}>;
template <auto... C>
using ConvTranspose1d = BasicConvTranspose1d<float, C...>;
template <auto... C>
using ConvTranspose2d = BasicConvTranspose2d<float, C...>;

}  // namespace xla::nn
