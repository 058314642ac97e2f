// SPDX-License-Identifier: Apache-2.0
#pragma once

// slice(), narrow(), select(), flip(), and writes into slices. Indexing by operators is in
// index.hpp.

#include "xla/op/arithmetic.hpp"
#include "xla/op/create.hpp"
#include "xla/op/reduce.hpp"
#include "xla/shape/bounds.hpp"

namespace xla::op {

/// Elements of one axis from number start on, step apart. The node's own dims are the result's.
struct slice {
  static constexpr auto name = "slice";
  static constexpr bool picks = true;
  static constexpr op_kind kind = op_kind::library;
  static constexpr auto accepts = detail::axes_rule::any;
  struct attributes {
    detail::axis_number axis{};
    std::int64_t step = 1;
    detail::size_value start{};
    XLA_ATTRIBUTES(axis, step, start)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
  static constexpr void gradient(auto& g) {
    const auto all = g.collected();
    const detail::shape dims = g.in(0).dims(), part = g.grad().dims();
    if (!all.defined())
      return g.to(0, scatter_part(any_zero(g.grad()), g.attributes(), g.grad(), dims));
    const auto sum = take_part(all, g.attributes(), part) + g.grad();
    g.replace(scatter_part(all, g.attributes(), sum, dims));
  }
};

/// The first input, broadcast to the node's sizes, with the elements that `slice` would take
/// replaced by the second input, which has their size along the axis and broadcasts along others.
struct slice_scatter {
  static constexpr auto name = "slice_scatter";
  static constexpr op_kind kind = op_kind::library;
  static constexpr auto accepts = detail::axes_rule::broadcast;
  static constexpr bool updates = true;
  using attributes = slice::attributes;
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
  static constexpr void gradient(auto& g) {
    const int axis = g.attributes().axis;
    detail::shape part = g.grad().dims();
    part[axis] = g.in(1).dims()[axis];
    if (g.needs(0)) {
      detail::shape hole;
      for (int i = 0; i < part.rank; ++i) hole.push(i == axis ? part[i] : 1);
      g.to(0, scatter_part(g.grad(), g.attributes(), expand_to(any_zero(g.grad()), hole),
                           g.grad().dims()));
    }
    if (g.needs(1)) g.to(1, take_part(g.grad(), g.attributes(), part));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::slice, all);
XLA_OP(xla::op::slice_scatter, numbers);

namespace xla {
namespace detail {

template <class T>
constexpr any_tensor<T> any_zero(const any_tensor<T>&) {
  return Tensor<T, 0>(T{});
}
template <class T, int R>
constexpr Tensor<T, R> take_part(const Tensor<T, R>& x, const op::slice::attributes& which,
                                 const shape& part) {
  return apply<op::slice, T, T, R>(with<op::slice>(which, part), x);
}
template <class T, int A, int B>
constexpr Tensor<T, B> scatter_part(const Tensor<T, A>& base, const op::slice::attributes& where,
                                    const Tensor<T, B>& part, const shape& all) {
  return apply<op::slice_scatter, T, T, B>(with<op::slice_scatter>(where, all), base, part);
}

/// A constant is moved into the graph of the given symbol table; any other tensor is returned as it
/// is.
template <class T, int R>
constexpr Tensor<T, R> with_table(const Tensor<T, R>& x, size_table* table) {
  if (!__builtin_is_constant_evaluated() || !table || x.owner()) return x;
  Tensor<T, R> value;
  value.name_node(table->owner, x.lift(table->owner));
  return value;
}

constexpr int checked_axis(const handle& x, int axis, const call_site& site) {
  const int rank = x.dims().rank, at = axis < 0 ? axis + rank : axis;
  if (at >= 0 && at < rank) return at;
  size_scope{x.table(), site}.fail(text("axis ") << axis << " of a tensor with " << rank
                                                 << " axes does not exist");
  return 0;
}

constexpr axis_range range_of(const handle& x, int axis, size_table* other, const call_site& site) {
  size_table* table = x.table() ? x.table() : other;
  return {Size(x.dims()[axis], table), {table, site}};
}

template <class T, int R>
constexpr Tensor<T, R> slice_axis(const Tensor<T, R>& x, int axis, const axis_part& p) {
  if (p.whole) return x;
  shape s = x.dims();
  s[axis] = p.length.extent();
  size_table* table = p.start.table() ? p.start.table() : p.length.table();
  return take_part(with_table(x, table), {axis, p.step, p.start.extent()}, s);
}

template <class T, int R>
constexpr Tensor<T, R> scatter_axis(const Tensor<T, R>& x, int axis, const axis_part& p,
                                    const Tensor<T, R>& part) {
  return scatter_part(with_table(x, p.start.table()), {axis, p.step, p.start.extent()}, part,
                      x.dims());
}

}  // namespace detail

/// The elements from start to end (not included) of one axis, step apart, like Python's
/// start:end:step: negative bounds count from the end, larger ones are clamped, a negative step
/// runs backwards. With sizes known only at run time, bounds must be within the axis. An axis that
/// does not exist, or a step of 0, is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> slice(const Tensor<T, R>& x, int axis,
                             std::type_identity_t<detail::bound> start = none,
                             std::type_identity_t<detail::bound> end = none, std::int64_t step = 1,
                             caller loc = here()) {
  static_assert(R != 0, "xla::slice: a tensor without axes has no parts");
  const detail::call_site site{"slice", loc};
  const int at = detail::checked_axis(x, axis, site);
  detail::size_table* table = start.table() ? start.table() : end.table();
  return detail::slice_axis(x, at, detail::range_of(x, at, table, site).between(start, end, step));
}

/// length elements of one axis from start on, all of which must exist; otherwise a shape_error.
template <class T, int R>
constexpr Tensor<T, R> narrow(const Tensor<T, R>& x, int axis, Size start, Size length,
                              caller loc = here()) {
  static_assert(R != 0, "xla::narrow: a tensor without axes has no parts");
  const detail::call_site site{"narrow", loc};
  const int at = detail::checked_axis(x, axis, site);
  detail::size_table* given = start.table() ? start.table() : length.table();
  const Size n(x.dims()[at], x.table() ? x.table() : given);
  const detail::size_scope scope{x.table() ? x.table() : given, site};
  const Size from = start.known() && start.extent() < 0 ? n + start : start;
  const bool known = n.known() && from.known() && length.known();
  const bool fits = known ? from.extent() >= 0 && length.extent() >= 0 &&
                                length.extent() <= n.extent() - from.extent()
                          : true;
  if (!fits)
    scope.fail(detail::text("there are no ")
               << length.extent() << " elements from " << start.extent() << " on along axis " << at
               << " of " << x.dims());
  if (!fits) return x;
  return detail::slice_axis(x, at,
                            detail::range_of(x, at, given, site).between(from, from + length, 1));
}

/// The elements with one index along an axis (negative: from its end), without that axis. An axis
/// or an index that does not exist is a shape_error.
template <class T, int R>
constexpr Tensor<T, R - 1> select(const Tensor<T, R>& x, int axis, Size index,
                                  caller loc = here()) {
  static_assert(R != 0, "xla::select: a tensor without axes has no elements to choose");
  const detail::call_site site{"select", loc};
  const int at = detail::checked_axis(x, axis, site);
  const detail::shape dims = x.dims();
  const auto one = detail::range_of(x, at, index.table(), site).one(index, at, dims);
  detail::shape s;
  for (int i = 0; i < dims.rank; ++i)
    if (i != at) s.push(dims[i]);
  return detail::with_shape<op::reshape, R - 1>(detail::slice_axis(x, at, one), s);
}

/// The elements in reverse order along the given axes. An axis that does not exist or is repeated
/// is a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> flip(const Tensor<T, R>& x, const int (&axes)[N], caller loc = here()) {
  const detail::axis_set all = detail::axes_of(x, R, axes, {"flip", loc});
  Tensor<T, R> y = x;
  for (int i = 0; i < R; ++i)
    if (all.has(i)) y = slice(y, i, none, none, -1, loc);
  return y;
}

}  // namespace xla
