// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops behind conv2d and its transposed form, and their gradients. The public functions are in
// derived/convolution.hpp, the kernels in kernel/convolution/.

#include <algorithm>

#include "xla/op/reduce.hpp"

namespace xla::detail {
template <class Op, class T>
constexpr any_tensor<T> convolved(const packed_attributes& attr, const any_tensor<T>& a,
                                  const any_tensor<T>& b, const shape& dims);
}

namespace xla::op {

struct convolution_input;
struct convolution_weight;

/// The base of a convolution and its two gradients: x (batch, in, height, width), y (batch, out,
/// height, width), and a weight (out, in / groups, height, width). Each op computes one of the
/// three and is linear in the other two, so that its gradients are the other ops.
struct convolving {
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool has_algorithms = true;
  struct attributes {
    detail::bounded<1, 255> stride[2] = {};
    detail::bounded<0, 4095> padding[4] = {};  ///< top, bottom, left, right
    detail::bounded<1, 255> dilation[2] = {};
    detail::bounded<1, 65536> groups{};
    bool channels_last = false;  ///< x and y are in memory as (batch, height, width, channels)
    bool direct = false;         ///< without Winograd's algorithm
    detail::precision precision{};
    XLA_ATTRIBUTES(stride, padding, dilation, groups, channels_last, direct, precision)
  };

  /// With fewer channels on a side than these a convolution stays float32 in autocast: reading,
  /// rounding and packing its pixels would take as long as multiplying them.
  static constexpr std::int64_t least_rounded = 32;
  /// The type to which operands are rounded, for a weight of these sizes.
  static constexpr detail::precision operands(const attributes& a, const shape& weight) {
    const bool wide = std::min(weight[0], weight[1]) >= least_rounded;
    return wide ? a.precision : detail::precision::float32;
  }

  /// It reads and writes images with their channels innermost.
  static constexpr detail::layout nhwc{0, 2, 3, 1};
  static constexpr void want_channels_last(detail::op_record& n) {
    attributes a = detail::unpack<attributes>(n.attr);
    a.channels_last = true;
    n.attr = detail::pack_fields(a);
  }
  static constexpr void preferred_layout(detail::op_record& n, detail::layout* inputs,
                                         detail::layout& result) {
    want_channels_last(n);
    inputs[0] = result = nhwc;
  }

  /// The extent of the kernel along an axis: dilation * (kernel - 1) + 1.
  static constexpr detail::extent reach(const detail::size_scope& sizes, detail::extent kernel,
                                        std::int64_t dilation) {
    return sizes.plus(sizes.multiply(sizes.minus(kernel, 1), dilation), 1);
  }
  /// y's size along an axis: (size + padding - reach) / stride + 1.
  static constexpr detail::extent output_size(const detail::size_scope& sizes, detail::extent size,
                                              detail::extent kernel, const attributes& a,
                                              int axis) {
    const std::int64_t around = a.padding[2 * axis] + a.padding[2 * axis + 1];
    const detail::extent free =
        sizes.minus(sizes.plus(size, around), reach(sizes, kernel, a.dilation[axis]));
    return sizes.plus(sizes.divide(free, a.stride[axis]), 1);
  }

 protected:
  /// (y's pixels, out, the terms of an element's sum).
  static constexpr shape loops_of(const shape& y, const shape& weight, const attributes& a) {
    shape s;
    s.push(y[0] * (a.channels_last ? y[1] * y[2] : y[2] * y[3]));
    s.push(weight[0]);
    s.push(weight[1] * weight[2] * weight[3]);
    return s;
  }
};

/// y from x and a weight.
struct convolution : convolving {
  static constexpr auto name = "convolution";
  static constexpr bool notifies_tiles = true;
  static constexpr int prepares = 1;
  static constexpr shape shape_of(const shape_rule& r) {
    const attributes a = r.attributes<convolution>();
    shape s = r.in[0];
    s[1] = r.in[1][0];
    for (int i = 0; i < 2; ++i)
      s[2 + i] = output_size(r.sizes, r.in[0][2 + i], r.in[1][2 + i], a, i);
    return s;
  }
  static constexpr shape loops(const shape* in, const shape& out, const attributes& a) {
    return loops_of(out, in[1], a);
  }
  static constexpr void gradient(auto& g) {
    const auto x = g.in(0), w = g.in(1), d = g.grad();
    const auto& attr = g.scope.attr;
    if (g.needs(0)) g.to(0, detail::convolved<convolution_input>(attr, d, w, x.dims()));
    if (g.needs(1)) g.to(1, detail::convolved<convolution_weight>(attr, x, d, w.dims()));
  }
};

/// x from y and a weight, with the node's own dims: a convolution's gradient, and a transposed
/// convolution.
struct convolution_input : convolving {
  static constexpr auto name = "convolution_input";
  static constexpr bool notifies_tiles = true;
  static constexpr int prepares = 1;
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
  static constexpr shape loops(const shape* in, const shape&, const attributes& a) {
    return loops_of(in[0], in[1], a);
  }
  static constexpr void gradient(auto& g) {
    const auto y = g.in(0), w = g.in(1), d = g.grad();
    const auto& attr = g.scope.attr;
    if (g.needs(0)) g.to(0, detail::convolved<convolution>(attr, d, w, {}));
    if (g.needs(1)) g.to(1, detail::convolved<convolution_weight>(attr, d, y, w.dims()));
  }
};

/// The weight from x and y, with the node's own dims.
struct convolution_weight : convolving {
  static constexpr auto name = "convolution_weight";
  static constexpr void preferred_layout(detail::op_record& n, detail::layout* inputs,
                                         detail::layout&) {
    want_channels_last(n);
    inputs[0] = inputs[1] = nhwc;
  }
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
  static constexpr shape loops(const shape* in, const shape& out, const attributes& a) {
    return loops_of(in[1], out, a);
  }
  static constexpr void gradient(auto& g) {
    const auto x = g.in(0), y = g.in(1), d = g.grad();
    const auto& attr = g.scope.attr;
    if (g.needs(0)) g.to(0, detail::convolved<convolution_input>(attr, y, d, x.dims()));
    if (g.needs(1)) g.to(1, detail::convolved<convolution>(attr, x, d, {}));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::convolution, fractions);
XLA_OP(xla::op::convolution_input, fractions);
XLA_OP(xla::op::convolution_weight, fractions);

namespace xla::detail {

/// The type to which an op rounds its operands, for these sizes.
constexpr precision precision_of(const op_info& op, const packed_attributes& attr, const shape* in,
                                 const shape& out) {
  const precision said = precision_of(op, attr);
  if (said == precision::float32) return said;
  const auto of = [&](const shape& weight) {
    return op::convolving::operands(unpack<op::convolving::attributes>(attr), weight);
  };
  if (is<op::convolution>(op) || is<op::convolution_input>(op)) return of(in[1]);
  return is<op::convolution_weight>(op) ? of(out) : said;
}

/// The attributes of an op without Winograd's algorithm, if it could use that.
constexpr packed_attributes without_winograd(const op_info& op, const packed_attributes& attr) {
  if (!is<op::convolution>(op) && !is<op::convolution_input>(op) && !is<op::convolution_weight>(op))
    return attr;
  constexpr packed_attributes none = pack_fields(op::convolving::attributes{});
  constexpr packed_attributes one = pack_fields(op::convolving::attributes{.direct = true});
  packed_attributes out = attr;  // by its bit, because every program contains this code
  out.low |= none.low ^ one.low;
  out.high |= none.high ^ one.high;
  return out;
}

template <class Op, class T>
constexpr any_tensor<T> convolved(const packed_attributes& attr, const any_tensor<T>& a,
                                  const any_tensor<T>& b, const shape& dims) {
  node n;
  n.attr = attr;
  n.set_shape(dims);
  return apply<Op, T, T, dynamic_rank>(n, a, b);
}

}  // namespace xla::detail
