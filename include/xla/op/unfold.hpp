// SPDX-License-Identifier: Apache-2.0
#pragma once

// unfold() and fold(): windows as columns, and back. Convolutions do not use them.

#include "xla/op/pooling.hpp"

namespace xla::op {

struct fold;

/// The elements of each window over images (batch, channels, height, width) as a column: (batch,
/// channels * kernel elements, windows); 0 in the padding. The result's sizes come with the node.
struct unfold {
  static constexpr auto name = "unfold";
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    detail::bounded<1, 65536> kernel[2] = {};
    detail::bounded<1, 65536> stride[2] = {};
    detail::bounded<0, 32767> padding[2] = {};  ///< before and after
    detail::bounded<1, 4096> dilation[2] = {};
    bool channels_last = false;  ///< images are in memory as (batch, height, width, channels)
    XLA_ATTRIBUTES(kernel, stride, padding, dilation, channels_last)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
  static constexpr void gradient(auto& g) {
    g.to(0, detail::pooled<fold>(g.scope.attr, g.in(0).dims(), g.grad()));
  }
};

/// The transpose of unfold: columns added up to images.
struct fold {
  static constexpr auto name = "fold";
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  using attributes = unfold::attributes;
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
  static constexpr void gradient(auto& g) {
    g.to(0, detail::pooled<unfold>(g.scope.attr, g.in(0).dims(), g.grad()));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::unfold, numbers);
XLA_OP(xla::op::fold, numbers);

namespace xla {

/// How the windows of unfold and fold are placed, by PyTorch's names.
struct UnfoldOptions {
  HeightWidth dilation = 1;  ///< from one element of a window to the next
  HeightWidth padding = 0;   ///< on both sides, of zeros
  HeightWidth stride = 1;    ///< from one window to the next
};

namespace detail {

constexpr pool_request unfold_request(const HeightWidth& kernel, const UnfoldOptions& o) {
  return {.kernel = kernel,
          .stride = o.stride,
          .padding = o.padding,
          .dilation = o.dilation,
          .any_padding = true};
}
constexpr op::unfold::attributes unfold_attributes(const HeightWidth& k, const UnfoldOptions& o) {
  return {.kernel = {k.height, k.width},
          .stride = {o.stride.height, o.stride.width},
          .padding = {o.padding.height, o.padding.width},
          .dilation = {o.dilation.height, o.dilation.width}};
}

}  // namespace detail

/// The elements of each window over images (batch, channels, height, width), or without the batch,
/// as columns: (batch, channels * kernel, windows), the windows row by row. Windows that do not fit
/// are a shape_error.
template <class T, int R>
constexpr Tensor<T, R - 1> unfold(const Tensor<T, R>& x, HeightWidth kernel_size,
                                  const UnfoldOptions& options = {}, caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::unfold: needs (batch, channels, height, width), or that without a batch");
  static_assert(!std::is_same_v<T, bool>, "xla::unfold: needs numbers, not bool; cast first");
  const Tensor<T, 4> images = detail::as_images<2>(x);
  const detail::size_scope scope{x.table(), {"unfold", loc}};
  const detail::shape s = images.dims(),
                      w = detail::unfold_request(kernel_size, options).windows(s, scope);
  detail::shape columns;
  columns.push(s[0]);
  columns.push(scope.multiply(s[1], kernel_size.height * kernel_size.width));
  columns.push(scope.multiply(w[2], w[3]));
  const auto spec =
      detail::with<op::unfold>(detail::unfold_attributes(kernel_size, options), scope, columns);
  const auto y = detail::apply_at<op::unfold, T, T, 3>(loc, spec, images);
  if constexpr (R == 4) return y;
  else return squeeze<0>(y);
}

/// Columns (batch, channels * kernel, windows), or without the batch, added up to images (batch,
/// channels, height, width) of a size: the reverse of unfold, with sums where windows overlap.
/// Columns that do not match the size are a shape_error.
template <class T, int R>
constexpr Tensor<T, R + 1> fold(const Tensor<T, R>& x, const ImageSize& output_size,
                                HeightWidth kernel_size, const UnfoldOptions& options = {},
                                caller loc = here()) {
  static_assert(R == 2 || R == 3,
                "xla::fold: needs (batch, channels * kernel, windows), or that without a batch");
  static_assert(!std::is_same_v<T, bool>, "xla::fold: needs numbers, not bool; cast first");
  const detail::size_scope scope{detail::table_of(x, output_size), {"fold", loc}};
  Tensor<T, 3> columns;
  if constexpr (R == 3) columns = detail::with_table(x, scope.table);
  else columns = unsqueeze(detail::with_table(x, scope.table), 0);
  const detail::shape from = columns.dims();
  detail::shape s;
  s.push(from[0]);
  s.push(from[1]);
  for (const detail::bound& n : {output_size.height, output_size.width})
    s.push(n.open || n.from_end() ? 0 : n.at.extent());
  const detail::shape w = detail::unfold_request(kernel_size, options).windows(s, scope);
  const std::int64_t taps = kernel_size.height * kernel_size.width;
  s[1] = taps < 1 ? from[1] : scope.divide(from[1], taps);
  detail::extent rows = from[1], windows = scope.multiply(w[2], w[3]);
  if (!scope.equal(rows, scope.multiply(s[1], taps)) || !scope.equal(windows, from[2]))
    scope.fail(detail::text("columns of shape ")
               << x.dims() << " are not those of a kernel of " << kernel_size.height << " * "
               << kernel_size.width << " at " << w[2] << " * " << w[3] << " places");
  const auto spec =
      detail::with<op::fold>(detail::unfold_attributes(kernel_size, options), scope, s);
  const auto y = detail::apply_at<op::fold, T, T, 4>(loc, spec, columns);
  if constexpr (R == 3) return y;
  else return squeeze<0>(y);
}

}  // namespace xla
