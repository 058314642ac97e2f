// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sizes of a convolution, its weights and its direction, which every header of the folder uses.

#include <cstdint>
#include <utility>

namespace xla::kernel {

/// One convolution: x is (batch, height, width, in), y (batch, out_height, out_width, out), both
/// contiguous. At a position of y the taps read x from stride times the position minus `padding`
/// on, `dilation` apart; x is 0 outside.
struct conv_sizes {
  std::int64_t batch, height, width, in;
  std::int64_t out_height, out_width, out;
  std::int64_t kernel[2], stride[2];
  std::int64_t padding[2];  ///< top, left
  std::int64_t dilation[2];
  std::int64_t groups;
  bool direct = false;  ///< without Winograd's algorithm
  bool rounds = false;  ///< round floats to bfloat16 while reading them; other algorithms ignore it

  bool operator==(const conv_sizes&) const = default;
  constexpr std::int64_t taps() const { return kernel[0] * kernel[1]; }
};

/// The same convolution with its two axes exchanged where images and kernels are one column wide:
/// their elements are those of one row in the same order, and kernels block and vectorise along
/// rows.
constexpr conv_sizes along_rows(conv_sizes s) {
  if (s.width != 1 || s.out_width != 1 || s.kernel[1] != 1 || s.padding[1] != 0) return s;
  std::swap(s.height, s.width);
  std::swap(s.out_height, s.out_width);
  for (auto* pair : {s.kernel, s.stride, s.padding, s.dilation}) std::swap(pair[0], pair[1]);
  return s;
}

/// The address of a weight's element (o, i within its group, tap): data[o * out_stride + i *
/// in_stride + tap * tap_stride].
template <class T>
struct conv_weights {
  const T* data;
  std::int64_t out_stride, in_stride, tap_stride;
  const T* packed = nullptr;  ///< the result of conv_pack(), if cached
};

/// The direction: y of x, x of y, or the weight.
enum class conv_direction { forward, input_gradient, weight_gradient };

}  // namespace xla::kernel
