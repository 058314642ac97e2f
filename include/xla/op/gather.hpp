// SPDX-License-Identifier: Apache-2.0
#pragma once

// gather(), scatter() and scatter_add(): an index for each element. Whole slices are in
// index_select.hpp.

#include "xla/op/check_index.hpp"
#include "xla/op/create.hpp"
#include "xla/op/reduce.hpp"

namespace xla::detail {
template <class T>
constexpr any_tensor<T> zeros_of(const any_tensor<T>& like, const shape& s);
template <class I, class T>
constexpr any_tensor<I> indices_along(const any_tensor<T>& x, int axis);
template <class T, int R>
constexpr Tensor<T, R> gather_along(const Tensor<T, R>& x, int axis,
                                    const Tensor<std::int64_t, R>& index,
                                    caller loc = unknown_caller);
template <class T>
constexpr any_tensor<T> gather_into(const any_tensor<T>& x, int axis,
                                    const any_tensor<std::int64_t>& index, const shape& s);
template <class Op, class T, int R>
constexpr Tensor<T, R> put_along(const Tensor<T, R>& x, int axis, const handle& index,
                                 const Tensor<T, R>& source, caller loc = unknown_caller);
}  // namespace xla::detail

namespace xla::op {

/// The base of ops with an index that has x's axes: its elements are positions along the axis;
/// along the others it corresponds to x's first elements.
struct indexed {
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    detail::axis_number axis{};
    XLA_ATTRIBUTES(axis)
  };
  static constexpr shape index_shape(const shape_rule& r) {
    const int axis = r.attributes<indexed>().axis;
    for (int i = 0; i < r.in[1].rank; ++i)
      if (i != axis && !r.sizes.at_least(r.in[0][i], r.in[1][i]))
        r.sizes.fail(detail::text("an index of shape ")
                     << r.in[1] << " for a tensor of shape " << r.in[0]
                     << ": it may be larger only along axis " << axis);
    return r.in[1];
  }
  /// Reads the incoming gradient at the index, for the source; 0 where the source is larger than
  /// the index.
  static constexpr auto of_source(auto& g) {
    return detail::gather_into(g.grad(), g.attributes().axis, g.template in<std::int64_t>(1),
                               g.in(2).dims());
  }
  /// Adds the incoming gradient at the index to x's gradient so far, or to zeros.
  static constexpr void gradient_of_picked(auto& g);
};

/// The base of ops that write the elements of a source, which may be larger than the index, to a
/// copy of x.
struct scattering : indexed {
  static constexpr bool updates = true;
  static constexpr shape shape_of(const shape_rule& r) {
    const shape index = index_shape(r);
    for (int i = 0; i < index.rank; ++i)
      if (!r.sizes.at_least(r.in[2][i], index[i]))
        r.sizes.fail(detail::text("an index of shape ")
                     << r.in[1] << " for a source of shape " << r.in[2]
                     << ": it may be smaller, but not larger");
    return r.in[0];
  }
};

/// Adds the source's elements, in the order of the source.
struct scatter_add : scattering {
  static constexpr auto name = "scatter_add";
  static constexpr bool computes = true;
  static constexpr void gradient(auto& g) {
    if (g.needs(0)) g.to(0, g.grad());
    if (g.needs(2)) g.to(2, of_source(g));
  }
};

/// Replaces elements by the source's; of several for one index the last counts.
struct scatter : scattering {
  static constexpr auto name = "scatter";
  static constexpr void gradient(auto& g) {
    const auto index = g.template in<std::int64_t>(1);
    if (g.needs(0)) {
      const auto none = detail::zeros_of(g.grad(), index.dims());
      g.to(0, detail::put_along<scatter>(g.grad(), g.attributes().axis, index, none));
    }
    if (g.needs(2)) g.to(2, xla::where(stays(g, index), of_source(g), 0));
  }

 private:
  // Of several elements for one index only the last has a gradient.
  static constexpr detail::any_tensor<bool> stays(auto& g,
                                                  const detail::any_tensor<std::int64_t>& index) {
    const shape s = g.in(2).dims();
    const auto none = detail::zeros_of(index, g.in(0).dims());
    const auto order = detail::indices_along<std::int64_t>(g.in(2), g.attributes().axis);
    const auto last = detail::put_along<scatter>(none, g.attributes().axis, index, order);
    return detail::gather_into(last, g.attributes().axis, index, s) == order;
  }
};

constexpr void indexed::gradient_of_picked(auto& g) {
  const auto index = g.template in<std::int64_t>(1);
  const int axis = g.attributes().axis;
  if (const auto all = g.collected(); all.defined())
    return g.replace(detail::put_along<scatter_add>(all, axis, index, g.grad()));
  const auto none = detail::zeros_of(g.grad(), g.in(0).dims());
  g.to(0, detail::put_along<scatter_add>(none, axis, index, g.grad()));
}

/// The elements that the index names.
struct gather : indexed {
  static constexpr auto name = "gather";
  static constexpr bool picks = true;
  static constexpr shape shape_of(const shape_rule& r) { return index_shape(r); }
  static constexpr void gradient(auto& g) { gradient_of_picked(g); }
};

/// The same in a larger shape, the node's: 0 beyond the index.
struct gather_into : indexed {
  static constexpr auto name = "gather_into";
  static constexpr bool picks = true;
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
  static constexpr void gradient(auto& g) { gradient_of_picked(g); }
};

}  // namespace xla::op

XLA_OP(xla::op::scatter_add, numbers);
XLA_OP(xla::op::scatter, all);
XLA_OP(xla::op::gather, all);
XLA_OP(xla::op::gather_into, numbers);

namespace xla {
namespace detail {

template <class T>
constexpr any_tensor<T> zeros_of(const any_tensor<T>&, const shape& s) {
  return expand_to(any_tensor<T>(Tensor<T, 0>(T{})), s);
}
/// The number of each element's index along an axis, in x's shape.
template <class I, class T>
constexpr any_tensor<I> indices_along(const any_tensor<T>& x, int axis) {
  const shape all = x.dims();
  shape s;
  for (int i = 0; i < all.rank; ++i) s.push(i == axis ? all[i] : 1);
  const any_tensor<I> order = arange<I>(x.size(axis));
  return expand_to(reshape_to(order, s), all);
}
/// gather with an index that is known to be in range.
template <class T, int R>
constexpr Tensor<T, R> gather_along(const Tensor<T, R>& x, int axis,
                                    const Tensor<std::int64_t, R>& index, caller loc) {
  return apply_at<op::gather, T, T, R>(loc, with<op::gather>({axis}), x, index);
}
template <class T>
constexpr any_tensor<T> gather_into(const any_tensor<T>& x, int axis,
                                    const any_tensor<std::int64_t>& index, const shape& s) {
  if (s == index.dims()) return gather_along(x, axis, index);
  return apply<op::gather_into, T, T, dynamic_rank>(with<op::gather_into>({axis}, s), x, index);
}
template <class Op, class T, int R>
constexpr Tensor<T, R> put_along(const Tensor<T, R>& x, int axis, const handle& index,
                                 const Tensor<T, R>& source, caller loc) {
  return apply_at<Op, T, T, R>(loc, with<Op>({axis}), x, index, source);
}
template <class Op, class T, int R, int I>
constexpr Tensor<T, R> scatter_by(const Tensor<T, R>& x, int axis,
                                  const Tensor<std::int64_t, I>& index, const Tensor<T, I>& source,
                                  caller loc) {
  static_assert(R >= 1 && R == I,
                "xla::scatter and scatter_add: x, index and source need the same number of axes");
  const int at = axis_of(x, R, axis, {Op::name, loc});
  return put_along<Op>(x, at, check_index<Op>(index, x.size(at), loc), source, loc);
}

}  // namespace detail

/// The elements of x at an index along an axis: out[i][j] = x[index[i][j]][j] for axis 0. The index
/// has x's axes, with x's sizes or smaller ones except along the axis. An index outside [0, size)
/// is an index_error.
template <class T, int R, int I>
constexpr Tensor<T, R> gather(const Tensor<T, R>& x, int axis, const Tensor<std::int64_t, I>& index,
                              caller loc = here()) {
  static_assert(R >= 1 && R == I,
                "xla::gather: x and index need the same number of axes; see take_along_dim");
  const int at = detail::axis_of(x, R, axis, {"gather", loc});
  if constexpr (R != I) return x;
  else return detail::gather_along(x, at, check_index<op::gather>(index, x.size(at), loc), loc);
}

/// x with elements replaced: out[index[i][j]][j] = source[i][j] for axis 0. The source has the
/// index's sizes or larger ones, of which the first elements are used. Of several elements for one
/// index the last counts, and it alone has a gradient. Sizes that do not match are a shape_error,
/// an index that does not exist an index_error.
template <class T, int R, int I>
constexpr Tensor<T, R> scatter(const Tensor<T, R>& x, int axis,
                               const Tensor<std::int64_t, I>& index, const Tensor<T, I>& source,
                               caller loc = here()) {
  return detail::scatter_by<op::scatter>(x, axis, index, source, loc);
}
/// The same with one number at all indices.
template <class T, int R, int I>
constexpr Tensor<T, R> scatter(const Tensor<T, R>& x, int axis,
                               const Tensor<std::int64_t, I>& index, detail::number_of<T> value,
                               caller loc = here()) {
  return scatter(x, axis, index,
                 detail::fill_shape<T, I>(value.element(x.table()), index.dims(), index.table()),
                 loc);
}

/// x with elements added: out[index[i][j]][j] += source[i][j] for axis 0, in the order of the
/// source, which has the index's sizes or larger ones. The errors are those of scatter.
template <class T, int R, int I>
constexpr Tensor<T, R> scatter_add(const Tensor<T, R>& x, int axis,
                                   const Tensor<std::int64_t, I>& index, const Tensor<T, I>& source,
                                   caller loc = here()) {
  static_assert(!std::is_same_v<T, bool>, "xla::scatter_add: needs numbers, not bool; cast first");
  return detail::scatter_by<op::scatter_add>(x, axis, index, source, loc);
}

}  // namespace xla
