// SPDX-License-Identifier: Apache-2.0
#pragma once

// Windows over images, shared by all pooling ops: sizes, options, shape rules. max_pool.hpp,
// avg_pool.hpp and unfold.hpp build on it.

#include <concepts>
#include <string_view>

#include "xla/op/reduce.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/spatial.hpp"

namespace xla::detail {
template <class Op, class T, class... H>
constexpr any_tensor<T> pooled(const packed_attributes& attr, const shape& dims,
                               const any_tensor<T>& x, const H&... more);
}  // namespace xla::detail

namespace xla::op {

/// The base of ops between images (batch, channels, height, width) and the windows over them, each
/// of which is an element of (batch, channels, rows of windows, windows in a row). The result's
/// sizes come with the node.
struct pooling {
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  static constexpr auto accepts = detail::axes_rule::images;
  struct attributes {
    detail::bounded<1, 65536> kernel[2] = {};
    detail::bounded<1, 65536> stride[2] = {};
    detail::bounded<0, 32767> padding[2] = {};  ///< before and after
    detail::bounded<1, 4096> dilation[2] = {};
    bool adaptive = false;           ///< windows that divide the image evenly; no kernel size then
    bool count_include_pad = false;  ///< averages include padding
    bool sums = false;               ///< and are not divided
    bool channels_last = false;      ///< all are in memory as (batch, height, width, channels)
    XLA_ATTRIBUTES(kernel, stride, padding, dilation, adaptive, count_include_pad, sums,
                   channels_last)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
};

}  // namespace xla::op

namespace xla {

/// The distance of windows; none: their own size.
template <class N>
struct PoolStride {
  N number = 1;
  bool given = false;

  constexpr PoolStride(none_t) {}
  template <class... A>
    requires(sizeof...(A) > 0 && std::constructible_from<N, A...>)
  constexpr PoolStride(A... a) : number(a...), given(true) {}

  constexpr N of(const N& kernel) const { return given ? number : kernel; }
};

namespace detail {

template <class Op, class T, class... H>
constexpr any_tensor<T> pooled(const packed_attributes& attr, const shape& dims,
                               const any_tensor<T>& x, const H&... more) {
  node n;
  n.attr = attr;
  n.set_shape(dims);
  return apply<Op, T, T, dynamic_rank>(n, x, more...);
}

/// Signals (batch, channels, length) as images of height 1, either with or without the batch.
template <int Axes, class T, int R>
constexpr Tensor<T, 4> as_images(const Tensor<T, R>& x) {
  if constexpr (R == 4) return x;
  else {
    const shape from = x.dims();
    shape s;
    if (R == Axes + 1) s.push(1);
    for (int i = 0; i < R; ++i) {
      if (Axes == 1 && i == R - 1) s.push(1);
      s.push(from[i]);
    }
    return with_shape<op::reshape, 4>(x, s);
  }
}
/// The reverse.
template <int Axes, int R, class T>
constexpr Tensor<T, R> from_images(const Tensor<T, 4>& y) {
  if constexpr (R == 4) return y;
  else {
    const shape from = y.dims();
    shape s;
    for (int i = R == Axes + 1 ? 1 : 0; i < 4; ++i)
      if (Axes == 2 || i != 2) s.push(from[i]);
    return with_shape<op::reshape, R>(y, s);
  }
}

/// The arguments of a pooling function, and the sizes that follow.
struct pool_request {
  HeightWidth kernel, stride, padding = 0, dilation = 1;
  bool ceil_mode = false;
  bool one_axis = false;
  bool depths = false;       ///< along the first axis, of volumes
  bool any_padding = false;  ///< need not be at most half of the kernel

  /// Along one axis.
  static constexpr pool_request along(std::int64_t kernel, std::int64_t stride,
                                      std::int64_t padding, std::int64_t dilation, bool ceil_mode) {
    return {{1, kernel}, {1, stride}, {0, padding}, {1, dilation}, ceil_mode, true};
  }

  constexpr op::pooling::attributes attributes() const {
    return {.kernel = {kernel.height, kernel.width},
            .stride = {stride.height, stride.width},
            .padding = {padding.height, padding.width},
            .dilation = {dilation.height, dilation.width}};
  }
  /// The windows over images x.
  constexpr shape windows(const shape& x, const size_scope& scope) const {
    shape s = x;
    s[2] = count(x[2], {kernel.height, stride.height, padding.height, dilation.height},
                 depths ? "depth" : "height", scope);
    s[3] = count(x[3], {kernel.width, stride.width, padding.width, dilation.width},
                 one_axis ? "length" : "width", scope);
    return s;
  }

 private:
  struct along_axis {
    std::int64_t k, s, p, d;
  };
  // PyTorch's floor((n + 2p - d(k - 1) - 1) / s) + 1; or with ceil, but without windows that begin
  // in the padding at the end. Both are floor((n + free) / s) + 1.
  constexpr extent count(extent n, const along_axis& a, std::string_view axis,
                         const size_scope& scope) const {
    const auto [k, s, p, d] = a;
    if (k < 1 || s < 1 || d < 1 || p < 0) return 1;  // refused where it is packed
    if (p > k / 2 && !any_padding) {
      scope.fail(text("a padding of ")
                 << p << " along the " << axis << " is more than half of a kernel of " << k);
      return 1;
    }
    const std::int64_t whole = 2 * p - d * (k - 1) - 1, rounded = whole + s - 1;
    const std::int64_t free = !ceil_mode ? whole : rounded < p - 1 ? rounded : p - 1;
    if (!scope.at_least(n, free < -1 ? -free : 1)) {
      scope.fail(text("no window fits along the ")
                 << axis << ": (" << n << " + 2 * " << p << " - " << d << " * (" << k
                 << " - 1) - 1) / " << s << " + 1 is below 1; take a smaller kernel");
      return 1;
    }
    return ((Size(n, scope.table) + free) / s + 1).extent();
  }
};

/// The op of a pool, on images.
template <class Op, class T, class Out = T>
constexpr Tensor<Out, 4> pool_images(const Tensor<T, 4>& x, const pool_request& how,
                                     const op::pooling::attributes& a, const call_site& site) {
  const size_scope scope{x.table(), site};
  const shape windows = how.windows(x.dims(), scope);
  return apply_at<Op, Out, T, 4>(site.at, with<Op>(a, scope, windows), x);
}

/// The place where x's sizes, or requested ones, are computed.
constexpr size_table* table_of(const handle& x, const ImageSize& size) {
  if (x.table()) return x.table();
  return size.height.table() ? size.height.table() : size.width.table();
}

/// The same with windows that divide images evenly into a given number; xla::none keeps a size.
template <class Op, class T, class Out = T>
constexpr Tensor<Out, 4> share_images(const Tensor<T, 4>& x, const ImageSize& size,
                                      const call_site& site) {
  const size_scope scope{table_of(x, size), site};
  shape s = x.dims();
  for (int i = 0; i < 2; ++i) {
    const bound& wanted = i == 0 ? size.height : size.width;
    if (!scope.at_least(s[2 + i], 1)) scope.fail(text("an image of ") << x.dims() << " is empty");
    if (wanted.open) continue;
    s[2 + i] = wanted.at.extent();
    if (wanted.at.known() ? wanted.at.extent() >= 1 : scope.at_least(s[2 + i], 1)) continue;
    scope.fail(text("a size of ") << wanted.at.extent()
                                  << " was asked for; it has to be at least 1");
    s[2 + i] = 1;
  }
  return apply_at<Op, Out, T, 4>(site.at, with<Op>({.adaptive = true}, scope, s),
                                 with_table(x, scope.table));
}

}  // namespace detail
}  // namespace xla
