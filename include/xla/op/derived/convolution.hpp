// SPDX-License-Identifier: Apache-2.0
#pragma once

// conv1d(), conv2d() and their transposes: they check and complete the arguments of the op in
// op/convolution.hpp.

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "xla/op/arithmetic.hpp"
#include "xla/op/convolution.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/spatial.hpp"

namespace xla {

namespace detail {
/// A number for each of D axes.
template <int D>
using per_axis = std::conditional_t<D == 1, std::int64_t, HeightWidth>;
constexpr std::int64_t of_axis(std::int64_t n, int) { return n; }
constexpr std::int64_t of_axis(const HeightWidth& n, int axis) {
  return axis == 0 ? n.height : n.width;
}
}  // namespace detail

namespace tags {
/// Gives a convolution's result the sizes of its input: conv2d(x, w, {.padding = xla::tags::same}).
/// If an odd number of zeros is needed, there is one more after than before.
struct same_t {};
inline constexpr same_t same{};
/// A convolution without padding.
struct valid_t {};
inline constexpr valid_t valid{};
}  // namespace tags

/// Zeros before and after each of D axes: numbers, xla::tags::same or xla::tags::valid.
template <int D>
struct ConvPadding {
  detail::per_axis<D> zeros = 0;
  bool is_same = false;

  constexpr ConvPadding(std::integral auto all) : zeros(all) {}
  constexpr ConvPadding(std::integral auto height, std::integral auto width)
    requires(D == 2)
      : zeros(height, width) {}
  constexpr ConvPadding(const HeightWidth& each)
    requires(D == 2)
      : zeros(each) {}
  constexpr ConvPadding(tags::same_t) : is_same(true) {}
  constexpr ConvPadding(tags::valid_t) {}
};

/// How a convolution goes over D axes, by PyTorch's names and with its defaults.
template <int D>
struct ConvOptions {
  detail::per_axis<D> stride = 1;    ///< from one position of the kernel to the next
  ConvPadding<D> padding = 0;        ///< zeros before and after each axis
  detail::per_axis<D> dilation = 1;  ///< from one element of the kernel to the next
  std::int64_t groups = 1;           ///< of channels, each with outputs of its own
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;

/// The same for a transposed convolution.
template <int D>
struct ConvTransposeOptions {
  detail::per_axis<D> stride = 1;          ///< from one position of the kernel to the next
  detail::per_axis<D> padding = 0;         ///< cropped before and after each axis
  detail::per_axis<D> output_padding = 0;  ///< added at the end of each axis
  std::int64_t groups = 1;                 ///< of channels, each with outputs of its own
  detail::per_axis<D> dilation = 1;        ///< from one element of the kernel to the next
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;

namespace detail {

using conv_attributes = op::convolving::attributes;

/// The beginnings of error sentences, for functions over D axes. The last two are for errors that
/// only a call can find.
template <int D>
struct conv_names {
  static constexpr std::string_view forward = D == 1 ? "conv1d" : "conv2d";
  static constexpr std::string_view transposed = D == 1 ? "conv_transpose1d" : "conv_transpose2d";
  static constexpr std::string_view large =
      D == 1 ? "conv1d: the kernel is larger than the padded input"
             : "conv2d: the kernel is larger than the padded input";
  static constexpr std::string_view nothing =
      D == 1 ? "conv_transpose1d: nothing is left of the result"
             : "conv_transpose2d: nothing is left of the result";
};

template <int D, class T, int A, int B>
constexpr bool convolves() {
  static_assert(D != 1 || (A == 3 && B == 3),
                "xla::conv1d and conv_transpose1d: need a batch (batch, channels, length) and a "
                "weight of three axes; add an axis with unsqueeze(x, 0)");
  static_assert(D != 2 || (A == 4 && B == 4),
                "xla::conv2d and conv_transpose2d: need a batch (batch, channels, height, width) "
                "and a weight of four axes; add an axis with unsqueeze(x, 0)");
  static_assert(floating_type<T>, "xla: a convolution needs float, double or bfloat16; cast first");
  return A == D + 2 && B == D + 2 && floating_type<T>;
}

/// The arguments of a convolution over D axes, for checks and shapes before there is a node. It has
/// the user's shapes, and the attributes for two axes; a single axis is the second.
template <int D>
struct conv_call {
  size_scope sizes;
  shape x, weight;
  conv_attributes attr;

  constexpr conv_call(const handle& input, const handle& w, const call_site& site)
      : sizes{input.table() ? input.table() : w.table(), site}, x(input.dims()), weight(w.dims()) {}

  constexpr void set(const auto& options, const per_axis<D>& padding) {
    for (int i = 2 - D; i < 2; ++i) {
      const int axis = i + D - 2;
      attr.stride[i] = of_axis(options.stride, axis);
      attr.dilation[i] = of_axis(options.dilation, axis);
      attr.padding[2 * i] = attr.padding[2 * i + 1] = of_axis(padding, axis);
    }
    attr.groups = options.groups;
    require_fit();
  }
  /// Replaces values that do not fit the attributes, after they have been refused, by valid ones.
  constexpr void require_fit() { attr = unpack<conv_attributes>(pack(attr, sizes)); }

  /// x has the channels that the weight expects, its first axis is divided into groups, and it has
  /// elements.
  constexpr void check_channels(extent taken) const {
    const std::int64_t groups = attr.groups;
    extent channels = x[1];
    if (!sizes.equal(channels, taken))
      sizes.fail(text("a weight of shape ")
                 << weight << " with groups " << groups << " takes " << sizes.find(taken)
                 << " channels, and the input " << x << " has " << sizes.find(x[1]));
    extent first = weight[0];
    if (groups != 1 && !sizes.equal(first, sizes.multiply(sizes.divide(first, groups), groups)))
      sizes.fail(text() << sizes.find(first) << " channels cannot be divided into groups " << groups
                        << ": the first axis of a weight of shape " << weight);
    for (int i = 0; i < D; ++i)
      if (!sizes.at_least(weight[2 + i], 1))
        sizes.fail(text("a kernel without elements: a weight of shape ") << weight);
  }
  constexpr void check_bias(const handle* bias, extent outputs) const {
    if (!bias) return;
    if (extent e = bias->dims()[0]; !sizes.equal(e, outputs))
      sizes.fail(text("a bias of shape ")
                 << bias->dims() << " for " << sizes.find(outputs) << " outputs");
  }

  /// Whether the input or output has so few channels that autocast leaves the convolution in
  /// float32.
  constexpr bool is_narrow() const {
    const auto few = [this](int axis) {
      const extent channels = sizes.find(weight[axis]);
      return is_known(channels) && channels < op::convolving::least_rounded;
    };
    return few(0) || few(1);
  }

  /// Chooses the padding for tags::same, so that y has the sizes of x.
  constexpr void pad_to_same() {
    for (int i = 2 - D; i < 2; ++i) {
      if (attr.stride[i] != 1)
        sizes.fail(text("padding = xla::tags::same needs stride 1, and it is ")
                   << std::int64_t{attr.stride[i]});
      const extent kernel = sizes.find(weight[D + i]);
      if (!is_known(kernel))
        sizes.fail("padding = xla::tags::same needs a kernel whose size the compiler knows");
      const std::int64_t zeros = kernel > 0 ? attr.dilation[i] * (kernel - 1) : 0;
      attr.padding[2 * i] = zeros / 2;
      attr.padding[2 * i + 1] = zeros - zeros / 2;
    }
    require_fit();
  }
  constexpr void check_reach() const {
    const size_scope at_call{sizes.table, {conv_names<D>::large, sizes.site.at}};
    for (int i = 2 - D; i < 2; ++i) {
      const std::int64_t dilation = attr.dilation[i];
      const std::int64_t before = attr.padding[2 * i], after = attr.padding[2 * i + 1];
      const extent size = sizes.find(x[D + i]), kernel = sizes.find(weight[D + i]);
      const extent padded = sizes.plus(size, before + after);
      const extent reach = op::convolving::reach(sizes, kernel, dilation);
      if (!at_call.at_least(padded, reach))
        sizes.fail(text("the kernel is larger than the padded input: dilation ")
                   << dilation << " * (kernel " << kernel << " - 1) + 1 = " << reach << ", padding "
                   << before << " + size " << size << " + padding " << after << " = " << padded);
    }
  }

  /// The sizes of a transposed convolution's result; `zeros` is the number of rows and columns at
  /// its end that no input reaches. output_padding first offsets the padding; the rest is what a
  /// convolution by that stride would skip. So a convolution of the result has the sizes of x.
  constexpr shape transposed_sizes(const per_axis<D>& output_padding, std::int64_t* zeros) {
    const size_scope at_call{sizes.table, {conv_names<D>::nothing, sizes.site.at}};
    shape out = x;
    out[1] = sizes.multiply(weight[1], attr.groups);
    for (int i = 2 - D; i < 2; ++i) {
      const std::int64_t stride = attr.stride[i], dilation = attr.dilation[i];
      const std::int64_t padding = attr.padding[2 * i], more = of_axis(output_padding, i + D - 2);
      if (more < 0 || more >= std::max(stride, dilation))
        sizes.fail(text("output_padding ")
                   << more << " has to be from 0 to below the larger one of stride " << stride
                   << " and dilation " << dilation);
      const std::int64_t back = std::clamp<std::int64_t>(more, 0, padding), rest = more - back;
      attr.padding[2 * i + 1] = padding - back;
      zeros[i] = rest - rest % stride;
      const extent size = sizes.find(x[D + i]), kernel = sizes.find(weight[D + i]);
      const extent whole = sizes.plus(sizes.multiply(sizes.minus(size, 1), stride),
                                      op::convolving::reach(sizes, kernel, dilation));
      const extent made = sizes.minus(sizes.plus(whole, rest % stride), 2 * padding - back);
      if (!sizes.at_least(size, 1)) sizes.fail(text("an input without elements to place: ") << x);
      if (!at_call.at_least(made, 1))
        sizes.fail(text("nothing is left of the result: stride ")
                   << stride << " * (size " << size << " - 1) + dilation " << dilation
                   << " * (kernel " << kernel << " - 1) + 1 + output_padding " << more
                   << " - 2 * padding " << padding << " = "
                   << stride * (size - 1) + dilation * (kernel - 1) + 1 + more - 2 * padding);
      out[D + i] = made;
    }
    return out;
  }

  /// Sizes for D axes as sizes for two.
  static constexpr shape over_two(const shape& s) {
    if (D == 2) return s;
    shape out = s;
    out[2] = 1;
    out.push(s[2]);
    return out;
  }
};

/// The result of an op over two axes, with a bias if there is one.
template <int D, class Op, class T>
constexpr Tensor<T, D + 2> convolved_by(const conv_call<D>& call, const Tensor<T, D + 2>& x,
                                        const Tensor<T, D + 2>& weight, const shape& dims) {
  conv_attributes attr = call.attr;
  // Sums of few channels would only lose bits: nothing multiplies them faster than float32. For
  // unknown numbers of channels the kernel decides.
  if (attr.groups == 1 && !call.is_narrow()) attr.precision = product_precision<T>(x, weight);
  node n;
  n.attr = pack_fields(attr);
  n.set_shape(dims);
  const caller loc = call.sizes.site.at;
  if constexpr (D == 2) return apply_at<Op, T, T, 4>(loc, n, x, weight);
  else return squeeze<2>(apply_at<Op, T, T, 4>(loc, n, unsqueeze(x, 2), unsqueeze(weight, 2)));
}
template <class T, int R>
constexpr Tensor<T, R> plus_bias(const Tensor<T, R>& y, const Tensor<T, 1>* bias, caller loc) {
  if (!bias) return y;
  shape s;
  for (int i = 1; i < R; ++i) s.push(i == 1 ? bias->dims()[0] : 1);
  return map_binary<op::add, T>(y, with_shape<op::reshape, R - 1>(*bias, s), loc);
}

template <int D, class T>
constexpr Tensor<T, D + 2> convolve(const Tensor<T, D + 2>& x, const Tensor<T, D + 2>& weight,
                                    const Tensor<T, 1>* bias, const ConvOptions<D>& options,
                                    caller loc) {
  conv_call<D> call(x, weight, {conv_names<D>::forward, loc});
  call.set(options, options.padding.zeros);
  call.check_channels(call.sizes.multiply(weight.dims()[1], call.attr.groups));
  call.check_bias(bias, weight.dims()[0]);
  if (options.padding.is_same) call.pad_to_same();
  call.check_reach();
  return plus_bias(convolved_by<D, op::convolution>(call, x, weight, {}), bias, loc);
}

template <int D, class T>
constexpr Tensor<T, D + 2> convolve_transposed(const Tensor<T, D + 2>& x,
                                               const Tensor<T, D + 2>& weight,
                                               const Tensor<T, 1>* bias,
                                               const ConvTransposeOptions<D>& options, caller loc) {
  conv_call<D> call(x, weight, {conv_names<D>::transposed, loc});
  call.set(options, options.padding);
  call.check_channels(weight.dims()[0]);
  std::int64_t zeros[2] = {};
  const shape sizes = call.transposed_sizes(options.output_padding, zeros);
  call.check_bias(bias, sizes[1]);
  auto y = convolved_by<D, op::convolution_input>(call, x, weight, call.over_two(sizes));
  for (int i = 2 - D; i < 2; ++i)
    if (zeros[i] > 0) y = pad_axis(y, D + i, {0, zeros[i]}, Tensor<T, 0>(T{}), loc);
  return plus_bias(y, bias, loc);
}

}  // namespace detail

/// The cross-correlation of images x (batch, in, height, width) with a weight (out, in / groups,
/// kernel height, kernel width), plus a bias (out) if there is one, like PyTorch's. The result is
/// (batch, out, …) with (size + 2 padding - dilation (kernel - 1) - 1) / stride + 1 along an axis,
/// rounded down. conv2d(x, w, b, {.stride = 2, .padding = {1, 0}}). Sizes that do not match are a
/// shape_error.
template <class T, int A, int B>
constexpr Tensor<T, 4> conv2d(const Tensor<T, A>& x, const Tensor<T, B>& weight,
                              const Conv2dOptions& options = {}, caller loc = here()) {
  if constexpr (detail::convolves<2, T, A, B>())
    return detail::convolve<2, T>(x, weight, nullptr, options, loc);
  else return {};
}
template <class T, int A, int B>
constexpr Tensor<T, 4> conv2d(const Tensor<T, A>& x, const Tensor<T, B>& weight,
                              const Tensor<T, 1>& bias, const Conv2dOptions& options = {},
                              caller loc = here()) {
  if constexpr (detail::convolves<2, T, A, B>())
    return detail::convolve<2, T>(x, weight, &bias, options, loc);
  else return {};
}

/// conv2d() along one axis: x (batch, in, length), a weight (out, in / groups, kernel).
template <class T, int A, int B>
constexpr Tensor<T, 3> conv1d(const Tensor<T, A>& x, const Tensor<T, B>& weight,
                              const Conv1dOptions& options = {}, caller loc = here()) {
  if constexpr (detail::convolves<1, T, A, B>())
    return detail::convolve<1, T>(x, weight, nullptr, options, loc);
  else return {};
}
template <class T, int A, int B>
constexpr Tensor<T, 3> conv1d(const Tensor<T, A>& x, const Tensor<T, B>& weight,
                              const Tensor<T, 1>& bias, const Conv1dOptions& options = {},
                              caller loc = here()) {
  if constexpr (detail::convolves<1, T, A, B>())
    return detail::convolve<1, T>(x, weight, &bias, options, loc);
  else return {};
}

/// The transpose of conv2d, its input's gradient: x (batch, in, height, width) with a weight (in,
/// out / groups, kernel height, kernel width), plus a bias (out) if there is one, like PyTorch's.
/// The result is (batch, out, …) with (size - 1) stride - 2 padding + dilation (kernel - 1) +
/// output_padding + 1 along an axis. output_padding is below the larger of stride and dilation.
/// Sizes that do not match are a shape_error.
template <class T, int A, int B>
constexpr Tensor<T, 4> conv_transpose2d(const Tensor<T, A>& x, const Tensor<T, B>& weight,
                                        const ConvTranspose2dOptions& options = {},
                                        caller loc = here()) {
  if constexpr (detail::convolves<2, T, A, B>())
    return detail::convolve_transposed<2, T>(x, weight, nullptr, options, loc);
  else return {};
}
template <class T, int A, int B>
constexpr Tensor<T, 4> conv_transpose2d(const Tensor<T, A>& x, const Tensor<T, B>& weight,
                                        const Tensor<T, 1>& bias,
                                        const ConvTranspose2dOptions& options = {},
                                        caller loc = here()) {
  if constexpr (detail::convolves<2, T, A, B>())
    return detail::convolve_transposed<2, T>(x, weight, &bias, options, loc);
  else return {};
}

/// conv_transpose2d() along one axis: x (batch, in, length), a weight (in, out / groups, kernel).
template <class T, int A, int B>
constexpr Tensor<T, 3> conv_transpose1d(const Tensor<T, A>& x, const Tensor<T, B>& weight,
                                        const ConvTranspose1dOptions& options = {},
                                        caller loc = here()) {
  if constexpr (detail::convolves<1, T, A, B>())
    return detail::convolve_transposed<1, T>(x, weight, nullptr, options, loc);
  else return {};
}
template <class T, int A, int B>
constexpr Tensor<T, 3> conv_transpose1d(const Tensor<T, A>& x, const Tensor<T, B>& weight,
                                        const Tensor<T, 1>& bias,
                                        const ConvTranspose1dOptions& options = {},
                                        caller loc = here()) {
  if constexpr (detail::convolves<1, T, A, B>())
    return detail::convolve_transposed<1, T>(x, weight, &bias, options, loc);
  else return {};
}

}  // namespace xla
