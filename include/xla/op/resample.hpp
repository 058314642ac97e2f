// SPDX-License-Identifier: Apache-2.0
#pragma once

// The op that interpolate() and pad() apply: a linear map along one axis. Programs call the
// functions in derived/.

#include "xla/op/slice.hpp"

namespace xla::detail {

/// How an element of the resampled axis is computed.
enum class resampling {
  nearest,        ///< the element at position * scale, rounded down
  nearest_exact,  ///< the element whose centre is nearest
  linear,         ///< two neighbours, weighted by distance
  cubic,          ///< four neighbours, by a cubic convolution
  reflect,        ///< pads by reflection
  replicate,      ///< pads by repeating the first and the last element
  circular,       ///< pads as if the axis were a ring
};

template <class Op, class T>
constexpr any_tensor<T> resampled(const packed_attributes& attr, const shape& dims,
                                  const any_tensor<T>& x);

}  // namespace xla::detail

namespace xla::op {

/// The base of linear maps between an axis and its resampled form. The result's sizes come with the
/// node.
struct along_resampled {
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  static constexpr auto accepts = detail::axes_rule::any;
  struct attributes {
    detail::axis_number axis{};
    detail::bounded<0, 6> way{};  ///< a detail::resampling
    bool align_corners = false;  ///< of linear and cubic: the first and the last element stay there
    detail::bounded<0, (1 << 30)> before{};  ///< how many elements come before the axis' own
    double scale = 0;  ///< by how many elements the axis grows; 0: given by the sizes
    detail::size_value
        sides{};  ///< of nearest: height and width of the image together; 0 for signals
    XLA_ATTRIBUTES(axis, way, align_corners, before, scale, sides)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
};

struct resample_backward;

/// Elements of an axis, or mixtures of some, at the positions of a resized axis.
struct resample : along_resampled {
  static constexpr auto name = "resample";
  static constexpr void gradient(auto& g) {
    g.to(0, detail::resampled<resample_backward>(g.scope.attr, g.in(0).dims(), g.grad()));
  }
};

/// The transpose of resample: adds the values at its positions to their sources.
struct resample_backward : along_resampled {
  static constexpr auto name = "resample_backward";
  static constexpr void gradient(auto& g) {
    g.to(0, detail::resampled<resample>(g.scope.attr, g.in(0).dims(), g.grad()));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::resample, numbers);
XLA_OP(xla::op::resample_backward, fractions);

namespace xla::detail {

template <class Op, class T>
constexpr any_tensor<T> resampled(const packed_attributes& attr, const shape& dims,
                                  const any_tensor<T>& x) {
  node n;
  n.attr = attr;
  n.set_shape(dims);
  return apply<Op, T, T, dynamic_rank>(n, x);
}

/// x with one axis resized.
template <class T, int R>
constexpr Tensor<T, R> resample_axis(const Tensor<T, R>& x, op::resample::attributes a, Size size,
                                     const call_site& site) {
  const Tensor<T, R> from = with_table(x, size.table());
  const size_scope scope{from.table(), site};
  shape s = x.dims();
  s[a.axis] = size.extent();
  return apply_at<op::resample, T, T, R>(site.at, with<op::resample>(a, scope, s), from);
}

}  // namespace xla::detail
