// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reductions over axes: sum, mean, max, min, each with its op and gradient. Eager kernels are in
// kernel/op/reduce.hpp; compiled regions fuse them (kernel/fused/row.hpp).

#include <limits>

#include "xla/op/cast.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/where.hpp"

namespace xla::detail {
template <class Op, class T, int R>
constexpr Tensor<T, R> reduce(const Tensor<T, R>& x, axis_set axes);
}

namespace xla::detail {
/// Whether a sum is over all axes of images (N, C, H, W) except the channels. Axes of size 1 count
/// as summed, because a gradient's sum omits them if sizes are known. Not a sum over the last axis
/// alone, which has the order of rows.
constexpr bool sums_channels(const shape& s, axis_set axes) {
  if (s.rank != 4 || axes.has(1) || axes == axis_set::one(3)) return false;
  for (int i = 0; i < 4; ++i)
    if (i != 1 && !axes.has(i) && s[i] != 1) return false;
  return true;
}
}  // namespace xla::detail

namespace xla::op {

/// The base of reductions: the reduced axes stay with size 1.
struct reduction {
  static constexpr op_kind kind = op_kind::reduce;
  struct attributes {
    detail::axis_set axes{};
    XLA_ATTRIBUTES(axes)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    const detail::axis_set axes = r.attributes<reduction>().axes;
    shape s = r.in[0];
    for (int i = 0; i < s.rank; ++i)
      if (axes.has(i)) s[i] = 1;
    return s;
  }
};

/// A sum over all axes of images except the channels adds in the order of channels-last memory, in
/// either layout, so that both give the same bits.
struct sum : reduction {
  static constexpr auto name = "sum";
  static constexpr bool rounds = true;  ///< the result's rounding depends on the order of the terms
  template <class T>
  static constexpr T identity = T{};
  static constexpr auto combine(auto a, auto b) { return a + b; }
  static constexpr void gradient(auto& g) { g.to(0, detail::expand_to(g.grad(), g.in(0).dims())); }
};

/// The base of max and min: all elements that equal the result share the gradient equally.
/// combine_numbers may assume that nothing is NaN; combine may not.
struct extremum : reduction {
  static constexpr void gradient(auto& g) {
    using T = typename decltype(g.grad())::value_type;
    const auto hit = xla::cast<T>(g.in(0) == g.out());
    g.to(0, g.grad() * hit / detail::reduce<sum>(hit, g.attributes().axes));
  }
};

struct max : extremum {
  static constexpr auto name = "max";
  template <class T>
  static constexpr T identity =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                           : std::numeric_limits<T>::lowest();
  static constexpr auto combine(auto a, auto b) { return a.max_nan(b); }
  static constexpr auto combine_numbers(auto a, auto b) { return a.max(b); }
};

struct min : extremum {
  static constexpr auto name = "min";
  template <class T>
  static constexpr T identity =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                           : std::numeric_limits<T>::max();
  static constexpr auto combine(auto a, auto b) { return a.min_nan(b); }
  static constexpr auto combine_numbers(auto a, auto b) { return a.min(b); }
};

}  // namespace xla::op

XLA_OP(xla::op::sum, numbers);
XLA_OP(xla::op::max, numbers);
XLA_OP(xla::op::min, numbers);

namespace xla {

/// Keeps reduced axes with size 1: sum(x, {1}, xla::keepdim).
struct keepdim_t {};
inline constexpr keepdim_t keepdim{};

namespace detail {

template <class Op, class T, int R>
constexpr Tensor<T, R> reduce(const Tensor<T, R>& x, axis_set axes) {
  return apply<Op, T, T, R>(with<Op>({.axes = axes}), x);
}

/// An axis counted from the first. One that is out of range is refused.
constexpr int axis_of(const handle& x, int rank, int axis, const call_site& site) {
  const int at = axis < 0 ? axis + rank : axis;
  if (at >= 0 && at < rank) return at;
  size_scope{x.table(), site}.fail(text("a tensor with ") << rank << " axes has no axis " << axis);
  return 0;
}

/// An axis that is out of range or repeated is refused.
template <std::size_t N>
constexpr axis_set axes_of(const handle& x, int rank, const int (&axes)[N], const call_site& site) {
  axis_set all;
  for (int a : axes) {
    const int axis = a < 0 ? a + rank : a;
    if (axis < 0 || axis >= rank || all.has(axis))
      size_scope{x.table(), site}.fail(text("axis ") << a << " of a tensor with " << rank
                                                     << " axes does not exist or is repeated");
    else all.add(axis);
  }
  return all;
}

/// x without some axes, which have size 1.
template <int R, class T>
constexpr Tensor<T, R> drop_axes(const handle& x, axis_set axes) {
  const shape from = x.dims();
  shape s;
  for (int i = 0; i < from.rank; ++i)
    if (!axes.has(i)) s.push(from[i]);
  return with_shape<op::reshape, R>(as_any<T>(x), s);
}

template <class Op, class T, int R>
constexpr Tensor<T, 0> reduce_all(const Tensor<T, R>& x) {
  const auto all = axis_set::range(0, x.dims().rank);
  if constexpr (R == 0) return x;
  else return drop_axes<0, T>(reduce<Op>(x, all), all);
}

template <class Op, class T, int R, std::size_t N>
constexpr auto reduce_axes(const Tensor<T, R>& x, const int (&axes)[N], caller loc) {
  static_assert(static_cast<int>(N) <= R, "xla: a reduction names more axes than the tensor has");
  const axis_set all = axes_of(x, R, axes, {Op::name, loc});
  return drop_axes<R - static_cast<int>(N), T>(reduce<Op>(x, all), all);
}

/// The type in which sums and products are computed and returned: 64-bit integers for integers and
/// bool, as in PyTorch.
template <class T>
using total_type = std::conditional_t<floating_type<T>, T, std::int64_t>;
/// An operand of a sum or product.
template <class T, int R>
constexpr decltype(auto) total_operand(const Tensor<T, R>& x) {
  if constexpr (std::is_same_v<total_type<T>, T>) return (x);
  else return cast<total_type<T>>(x);
}

/// Sums a broadcast gradient back to the shape it belongs to.
template <class T>
constexpr any_tensor<T> sum_to(const any_tensor<T>& x, const shape& target) {
  const shape from = x.dims();
  if (from == target) return x;
  const int missing = from.rank - target.rank;
  axis_set axes;
  for (int i = 0; i < from.rank; ++i)
    if (i < missing || (target[i - missing] == 1 && from[i] != 1)) axes.add(i);
  const any_tensor<T> total = axes.empty() ? x : reduce<op::sum>(x, axes);
  return missing > 0 ? reshape_to(total, target) : total;
}

}  // namespace detail

/// The sum over all elements, or over the given axes, which xla::keepdim keeps with size 1.
/// Floating-point numbers are summed in blocks, with the accuracy that op/README.md states;
/// integers and bool in std::int64_t. An axis that does not exist or is repeated is a shape_error.
template <class T, int R>
constexpr Tensor<detail::total_type<T>, 0> sum(const Tensor<T, R>& x) {
  return detail::reduce_all<op::sum>(detail::total_operand(x));
}
template <class T, int R, std::size_t N>
constexpr auto sum(const Tensor<T, R>& x, const int (&axes)[N], caller loc = here()) {
  return detail::reduce_axes<op::sum>(detail::total_operand(x), axes, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<detail::total_type<T>, R> sum(const Tensor<T, R>& x, const int (&axes)[N],
                                               keepdim_t, caller loc = here()) {
  return detail::reduce<op::sum>(detail::total_operand(x),
                                 detail::axes_of(x, R, axes, {"sum", loc}));
}

/// The largest element; NaN if there is one. For no elements -infinity, or the lowest integer. An
/// axis that does not exist or is repeated is a shape_error.
template <class T, int R>
constexpr Tensor<T, 0> max(const Tensor<T, R>& x) {
  return detail::reduce_all<op::max>(x);
}
template <class T, int R, std::size_t N>
constexpr auto max(const Tensor<T, R>& x, const int (&axes)[N], caller loc = here()) {
  return detail::reduce_axes<op::max>(x, axes, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> max(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                           caller loc = here()) {
  return detail::reduce<op::max>(x, detail::axes_of(x, R, axes, {"max", loc}));
}

/// The smallest element; NaN if there is one. For no elements infinity, or the largest integer. An
/// axis that does not exist or is repeated is a shape_error.
template <class T, int R>
constexpr Tensor<T, 0> min(const Tensor<T, R>& x) {
  return detail::reduce_all<op::min>(x);
}
template <class T, int R, std::size_t N>
constexpr auto min(const Tensor<T, R>& x, const int (&axes)[N], caller loc = here()) {
  return detail::reduce_axes<op::min>(x, axes, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> min(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                           caller loc = here()) {
  return detail::reduce<op::min>(x, detail::axes_of(x, R, axes, {"min", loc}));
}

/// The mean over all elements, or over the given axes, which xla::keepdim keeps with size 1. An
/// axis that does not exist or is repeated is a shape_error. For integers and bool:
/// mean(cast<float>(x)).
template <class T, int R>
constexpr auto mean(const Tensor<T, R>& x) {
  static_assert(floating_type<T>,
                "xla::mean: needs float or double; write xla::mean(xla::cast<float>(x))");
  return detail::narrowed<T>(sum(detail::widened(x)) / x.numel());
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> mean(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                            caller loc = here()) {
  static_assert(floating_type<T>,
                "xla::mean: needs float or double; write xla::mean(xla::cast<float>(x))");
  Size n = 1;
  for (int a : axes) n = n * x.size(detail::axis_of(x, R, a, {"mean", loc}));
  return detail::narrowed<T>(sum(detail::widened(x), axes, keepdim, loc) / n);
}
template <class T, int R, std::size_t N>
constexpr auto mean(const Tensor<T, R>& x, const int (&axes)[N], caller loc = here()) {
  static_assert(floating_type<T>,
                "xla::mean: needs float or double; write xla::mean(xla::cast<float>(x))");
  Size n = 1;
  for (int a : axes) n = n * x.size(detail::axis_of(x, R, a, {"mean", loc}));
  return detail::narrowed<T>(sum(detail::widened(x), axes, loc) / n);
}

}  // namespace xla
