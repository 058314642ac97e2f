// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of the ops of convolution: attributes to conv_sizes, layouts, cached weights.
// kernel/convolution computes them.

#include "xla/kernel/call.hpp"
#include "xla/kernel/convolution/allow_winograd.hpp"
#include "xla/kernel/convolution/convolution.hpp"
#include "xla/kernel/gemm/rounded_call.hpp"
#include "xla/kernel/memory/transposed_copy.hpp"
#include "xla/op/convolution.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::detail {

/// An image with channels innermost, as kernels take it: in place, or a copy.
template <class T>
class channels_last_image {
 public:
  /// Laid out as the attributes say: (batch, height, width, channels) or (batch, channels, …).
  channels_last_image(const shape& s, bool channels_last) {
    const std::int64_t second = s[1], last = s[2] * s[3];
    batch_ = s[0];
    channels = channels_last ? s[3] : second;
    height = s[channels_last ? 1 : 2];
    width = s[channels_last ? 2 : 3];
    transposed_ = !channels_last && second != 1 && last != 1;
  }
  const T* read(const void* from) {
    const T* const data = static_cast<const T*>(from);
    if (!transposed_) return data;
    T* const to = take();
    kernel::transpose_matrices(data, batch_, channels, height * width, to);
    return to;
  }
  /// The memory that a kernel writes. write() then transposes it to its destination if the layout
  /// differs.
  T* destination(void* to) { return transposed_ ? take() : static_cast<T*>(to); }
  void write(const T* made, void* to) const {
    if (transposed_)
      kernel::transpose_matrices(made, batch_, height * width, channels, static_cast<T*>(to));
  }

  std::int64_t channels, height, width;

 private:
  T* take() {
    const std::int64_t elements = batch_ * channels * height * width;
    return static_cast<T*>(memory_.take(static_cast<std::size_t>(elements) * sizeof(T)));
  }
  std::int64_t batch_;
  bool transposed_;
  working_memory memory_;
};

/// The images and sizes of a call of one of the three ops.
template <class T>
struct convolution_parts {
  op::convolving::attributes attr;
  bool rounds;  // rounds operands to bfloat16
  channels_last_image<T> x, y;
  kernel::conv_sizes sizes;

  convolution_parts(const op::convolving::attributes& a, const shape& of_x, const shape& weight,
                    const shape& of_y)
      : attr(a),
        rounds(std::is_same_v<T, float> &&
               op::convolving::operands(a, weight) == precision::bfloat16),
        x(of_x, a.channels_last),
        y(of_y, a.channels_last) {
    sizes = kernel::along_rows({.batch = of_x[0],
                                .height = x.height,
                                .width = x.width,
                                .in = x.channels,
                                .out_height = y.height,
                                .out_width = y.width,
                                .out = y.channels,
                                .kernel = {weight[2], weight[3]},
                                .stride = {a.stride[0], a.stride[1]},
                                .padding = {a.padding[0], a.padding[2]},
                                .dilation = {a.dilation[0], a.dilation[1]},
                                .groups = a.groups,
                                .direct = a.direct || !winograd_allowed<>()});
  }
  void choose(kernel::conv_direction d, kernel_choice& out) const {
    out.algorithm = kernel::conv_algorithm_name<T>(sizes);
    if (d == kernel::conv_direction::weight_gradient) return;
    auto* size = &kernel::conv_packed_size<T>;
    if (rounds) size = rounded().packed_size;
    out.cached = size(sizes, d) * kernel::element_size<T>;
  }
  /// The weights, with the packed form that their buffer caches, if there is one.
  kernel::conv_weights<T> cached_weights(const kernel_call& call, kernel::conv_direction d) const {
    auto w = weights(call.in[1]);
    auto* keep = &kernel::cache_packed<T>;
    if constexpr (std::is_same_v<T, float>)
      if (rounds) keep = rounded().cache_packed;
    keep(call.cache_owner, sizes, d, w);
    return w;
  }
  /// The weights without a cached form.
  kernel::conv_weights<T> weights(const void* data) const {
    const std::int64_t taps = sizes.taps();
    return {static_cast<const T*>(data), sizes.in / sizes.groups * taps, taps, 1};
  }
  static const kernel::rounded_convolutions& rounded() {
    return *kernel::the_rounded_convolutions.load();
  }
};

template <class Out, class T>
struct kernel_of<op::convolution, Out, T> {
  static void run(const kernel_call& call) {
    if (count(*call.out_shape) == 0) return;
    convolution_parts<T> p(call.attributes<op::convolution>(), call.in_shapes[0], call.in_shapes[1],
                           *call.out_shape);
    T* const y = p.y.destination(call.out);
    const auto w = p.cached_weights(call, kernel::conv_direction::forward);
    auto* forward = &kernel::conv_forward<T>;
    if constexpr (std::is_same_v<T, float>)
      if (p.rounds) forward = p.rounded().forward;
    forward(p.sizes, p.x.read(call.in[0]), w, y, p.attr.channels_last ? call.after : nullptr);
    p.y.write(y, call.out);
  }
  static void choose(const kernel_call& of, kernel_choice& out) {
    const convolution_parts<T> p(of.attributes<op::convolution>(), of.in_shapes[0], of.in_shapes[1],
                                 *of.out_shape);
    p.choose(kernel::conv_direction::forward, out);
  }
};

template <class Out, class T>
struct kernel_of<op::convolution_input, Out, T> {
  static void run(const kernel_call& call) {
    if (count(*call.out_shape) == 0) return;
    convolution_parts<T> p(call.attributes<op::convolution_input>(), *call.out_shape,
                           call.in_shapes[1], call.in_shapes[0]);
    T* const x = p.x.destination(call.out);
    const auto w = p.cached_weights(call, kernel::conv_direction::input_gradient);
    auto* gradient = &kernel::conv_input_gradient<T>;
    if constexpr (std::is_same_v<T, float>)
      if (p.rounds) gradient = p.rounded().input_gradient;
    gradient(p.sizes, p.y.read(call.in[0]), w, x, p.attr.channels_last ? call.after : nullptr);
    p.x.write(x, call.out);
  }
  static void choose(const kernel_call& of, kernel_choice& out) {
    const convolution_parts<T> p(of.attributes<op::convolution_input>(), *of.out_shape,
                                 of.in_shapes[1], of.in_shapes[0]);
    p.choose(kernel::conv_direction::input_gradient, out);
  }
};

template <class Out, class T>
struct kernel_of<op::convolution_weight, Out, T> {
  static void run(const kernel_call& call) {
    if (count(*call.out_shape) == 0) return;
    convolution_parts<T> p(call.attributes<op::convolution_weight>(), call.in_shapes[0],
                           *call.out_shape, call.in_shapes[1]);
    auto* gradient = &kernel::conv_weight_gradient<T>;
    if constexpr (std::is_same_v<T, float>)
      if (p.rounds) gradient = p.rounded().weight_gradient;
    gradient(p.sizes, p.x.read(call.in[0]), p.y.read(call.in[1]), static_cast<T*>(call.out));
  }
  static void choose(const kernel_call& of, kernel_choice& out) {
    const convolution_parts<T> p(of.attributes<op::convolution_weight>(), of.in_shapes[0],
                                 *of.out_shape, of.in_shapes[1]);
    p.choose(kernel::conv_direction::weight_gradient, out);
  }
};

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/kernel/convolution/cached_weights.hpp"
#endif
