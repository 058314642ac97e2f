// SPDX-License-Identifier: Apache-2.0
#pragma once

// Changes of shape that move no elements, and expand(). permute() and transpose(), which move them,
// are in permute.hpp.

#include "xla/op/op.hpp"

namespace xla::op {

/// The same elements under other sizes. The node's own dims are the target. Another number of
/// elements is a shape_error.
struct reshape {
  static constexpr auto name = "reshape";
  static constexpr op_kind kind = op_kind::alias;
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.op.dims_shape();
    int hole = -1;
    detail::extent known = 1;
    for (int i = 0; i < s.rank; ++i) {
      if (s[i] != -1) known = r.sizes.multiply(known, s[i]);
      else if (hole < 0) hole = i;
      else r.sizes.fail("only one size may be -1");
    }
    const detail::extent all = r.sizes.numel(r.in[0]);
    if (hole >= 0) s[hole] = r.sizes.divide(all, known);
    detail::extent product = r.sizes.numel(s);
    if (!r.sizes.equal(product, all))
      r.sizes.fail(detail::text("cannot view ")
                   << r.in[0] << " as " << s << ": the numbers of elements differ");
    return s;
  }
  static constexpr void gradient(auto& g) { g.to(0, reshape_to(g.grad(), g.in(0).dims())); }
};

/// The input broadcast to the node's own dims.
struct expand {
  static constexpr auto name = "expand";
  static constexpr op_kind kind = op_kind::library;
  static constexpr auto accepts = detail::axes_rule::broadcast;
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.op.dims_shape();
    const int missing = s.rank - r.in[0].rank;
    if (missing < 0) r.sizes.fail(detail::text("cannot expand ") << r.in[0] << " to " << s);
    for (int i = missing < 0 ? 0 : missing; i < s.rank; ++i) {
      const detail::extent from = r.sizes.find(r.in[0][i - missing]);
      if (s[i] == -1) s[i] = from;
      else if (from != 1 && !r.sizes.equal(s[i], from))
        r.sizes.fail(detail::text("cannot expand ")
                     << r.in[0] << " to " << s << ": only sizes that are 1 grow");
    }
    return s;
  }
  static constexpr void gradient(auto& g) { g.to(0, g.grad()); }
};

}  // namespace xla::op

XLA_OP(xla::op::reshape, all);
XLA_OP(xla::op::expand, all);

namespace xla {
namespace detail {

template <class Op, int R, class T, int A>
constexpr Tensor<T, R> with_shape(const Tensor<T, A>& x, const shape& s,
                                  caller loc = unknown_caller) {
  node n;
  n.set_shape(s);
  return apply_at<Op, T, T, R>(loc, n, x);
}
template <class T>
constexpr any_tensor<T> reshape_to(const any_tensor<T>& x, const shape& s) {
  return with_shape<op::reshape, dynamic_rank>(x, s);
}
template <class T>
constexpr any_tensor<T> expand_to(const any_tensor<T>& x, const shape& s) {
  return with_shape<op::expand, dynamic_rank>(x, s);
}
/// x with the sizes of another tensor, and in that tensor's graph.
template <class Op, int R, class T, int A>
constexpr Tensor<T, R> with_shape_of(Tensor<T, A> x, const handle& other, caller loc) {
  if (__builtin_is_constant_evaluated() && other.owner() && !x.owner())
    x.name_node(other.owner(), x.lift(other.owner()));
  return with_shape<Op, R>(x, other.dims(), loc);
}
template <std::size_t N>
constexpr size_table* table_of(const Size (&sizes)[N]) {
  for (const Size& s : sizes)
    if (s.table()) return s.table();
  return nullptr;
}
/// The symbol table of the sizes; for plain numbers, that of the device.
template <std::size_t N>
constexpr size_table* table_of(const Size (&sizes)[N], const Device& device) {
  size_table* const table = table_of(sizes);
  return table ? table : device.table();
}
/// A user's sizes or counts, each at least `lowest`: -1 if that has a meaning, else 0.
template <std::size_t N>
constexpr shape to_counts(const Size (&sizes)[N], const call_site& site, extent lowest) {
  static_assert(N <= max_rank, "xla: a tensor has at most 6 axes");
  shape s;
  for (const Size& e : sizes) {
    const bool wrong = e.known() && e.extent() < lowest;
    if (wrong)
      size_scope{table_of(sizes), site}.fail(text("a size is ")
                                             << e.extent() << ", which no axis can have");
    s.push(wrong ? 1 : e.extent());
  }
  return s;
}
/// The same for sizes of a tensor.
template <std::size_t N>
constexpr shape to_shape(const Size (&sizes)[N], const call_site& site, extent lowest) {
  const shape s = to_counts(sizes, site, lowest);
  size_scope{table_of(sizes), site}.countable(s);
  return s;
}

}  // namespace detail

/// The same elements under other sizes, e.g. reshape(x, {x.size(0), -1}); one size may be -1.
/// Another number of elements is a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> reshape(const Tensor<T, R>& x, const Size (&sizes)[N],
                                                 caller loc = here()) {
  return detail::with_shape<op::reshape, static_cast<int>(N)>(
      x, detail::to_shape(sizes, {"reshape", loc}, -1), loc);
}

/// Another name of reshape: tensors are values, so it does not matter whether it copies.
template <class T, int R, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> view(const Tensor<T, R>& x, const Size (&sizes)[N],
                                              caller loc = here()) {
  return reshape(x, sizes, loc);
}

/// The elements of x under the sizes of another tensor. Another number of elements is a
/// shape_error.
template <class T, int R, class U, int A>
constexpr Tensor<T, A> reshape_as(const Tensor<T, R>& x, const Tensor<U, A>& other,
                                  caller loc = here()) {
  return detail::with_shape_of<op::reshape, A>(x, other, loc);
}
/// Another name of reshape_as.
template <class T, int R, class U, int A>
constexpr Tensor<T, A> view_as(const Tensor<T, R>& x, const Tensor<U, A>& other,
                               caller loc = here()) {
  return reshape_as(x, other, loc);
}

/// One axis as several, whose sizes multiply to its own; one of them may be -1. Other sizes are a
/// shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R - 1 + static_cast<int>(N)> unflatten(const Tensor<T, R>& x, int axis,
                                                           const Size (&sizes)[N],
                                                           caller loc = here()) {
  static_assert(R != 0, "xla::unflatten: a tensor without axes has none to divide");
  const int at = axis < 0 ? axis + R : axis;
  const detail::size_scope scope{x.table(), {"unflatten", loc}};
  if (at < 0 || at >= R) scope.fail("no such axis");
  const detail::shape from = x.dims();
  detail::shape parts = detail::to_shape(sizes, scope.site, -1), s;
  detail::extent known = 1;
  for (int k = 0; k < parts.rank; ++k)
    if (parts[k] != -1) known = scope.multiply(known, parts[k]);
  for (int k = 0, holes = 0; k < parts.rank && at >= 0 && at < R; ++k)
    if (parts[k] == -1) {
      parts[k] = scope.divide(from[at], known);
      if (holes++ > 0) scope.fail("only one size may be -1");
    }
  for (int i = 0; i < R; ++i) {
    if (i != at) s.push(from[i]);
    for (int k = 0; i == at && k < parts.rank; ++k) s.push(parts[k]);
  }
  return detail::with_shape<op::reshape, R - 1 + static_cast<int>(N)>(x, s, loc);
}

namespace detail {
/// The axes of R that flatten joins; a tensor without axes counts as having one.
template <int First, int Last, int R>
struct joined_axes {
  static constexpr int axes = R > 0 ? R : 1;
  static constexpr int first = First < 0 ? First + axes : First;
  static constexpr int last = Last < 0 ? Last + axes : Last;
  static constexpr bool exist = 0 <= first && first <= last && last < axes;
  static constexpr int left = exist ? axes - (last - first) : 1;
};
}  // namespace detail

/// The axes First to Last as one (negative: from the end), all by default: flatten<1>(x) is
/// (n, everything else), flatten<0, 1>(x) joins the first two.
template <int First = 0, int Last = -1, class T, int R>
constexpr auto flatten(const Tensor<T, R>& x)
    -> Tensor<T, detail::joined_axes<First, Last, R>::left> {
  using joined = detail::joined_axes<First, Last, R>;
  static_assert(joined::exist,
                "xla::flatten<First, Last>: no such axis, or the last comes before the first");
  const detail::shape from = x.dims();
  const int last = R > 0 ? joined::last : from.rank - 1;
  detail::shape s;
  for (int i = 0; i < joined::first; ++i) s.push(from[i]);
  detail::extent all = 1;  // not -1, which is ambiguous if another size is 0
  for (int i = joined::first; i <= last; ++i)
    all = detail::size_scope{x.table(), "flatten"}.multiply(all, from[i]);
  s.push(all);
  for (int i = last + 1; i < from.rank; ++i) s.push(from[i]);
  return detail::with_shape<op::reshape, joined::left>(x, s);
}

/// x with a new axis of size 1 at the given position (negative: from the end). An invalid position
/// is a shape_error.
template <class T, int R>
constexpr Tensor<T, R + 1> unsqueeze(const Tensor<T, R>& x, int axis, caller loc = here()) {
  const detail::shape from = x.dims();
  detail::shape s;
  const int at = axis < 0 ? axis + R + 1 : axis;
  if (at < 0 || at > R) detail::size_scope{x.table(), {"unsqueeze", loc}}.fail("no such axis");
  for (int i = 0; i < R; ++i) {
    if (i == at) s.push(1);
    s.push(from[i]);
  }
  if (s.rank == R) s.push(1);
  return detail::with_shape<op::reshape, R + 1>(x, s);
}

/// x without axis Axis, whose size must be 1 (negative: from the end). Another size is a
/// shape_error.
template <int Axis, class T, int R>
constexpr Tensor<T, R - 1> squeeze(const Tensor<T, R>& x, caller loc = here()) {
  constexpr int at = Axis < 0 ? Axis + R : Axis;
  static_assert(at >= 0 && at < R, "xla::squeeze<Axis>: no such axis");
  const detail::shape from = x.dims();
  const detail::size_scope scope{x.table(), {"squeeze", loc}};
  if (detail::extent n = from[at]; !scope.equal(n, 1))
    scope.fail(detail::text("axis ") << at << " of " << from << " does not have size 1");
  detail::shape s;
  for (int i = 0; i < R; ++i)
    if (i != at) s.push(from[i]);
  return detail::with_shape<op::reshape, R - 1>(x, s, loc);
}

namespace detail {

/// In a compiled body: x with an axis whose size n is known only in the call, 1 or `to`, expanded
/// to `to`. A new axis of size 1 before it is repeated to / n times, so that the compiler knows
/// which axes broadcast.
template <class T, int R>
constexpr Tensor<T, R> stretch(const Tensor<T, R>& x, int axis, extent to,
                               const size_scope& scope) {
  size_table& sizes = *scope.table;
  shape s = x.dims(), split;
  const extent n = s[axis], wrong = sizes.multiply(sizes.minus(n, 1), sizes.minus(to, n));
  scope.nonzero(sizes.divide(1, sizes.plus(1, wrong)), "expand: only sizes that are 1 grow");
  extent outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer = sizes.multiply(outer, s[i]);
  for (int i = axis; i < R; ++i) inner = sizes.multiply(inner, s[i]);
  split.push(outer);
  split.push(1);
  split.push(inner);
  const Tensor<T, 3> once = with_shape<op::reshape, 3>(x, split);
  split[1] = sizes.divide(to, n);
  s[axis] = sizes.multiply(split[1], n);
  const auto all = with_shape<op::reshape, R>(with_shape<op::expand, 3>(once, split), s);
  scope.equal(s[axis], to);
  return all;
}

/// Applies stretch() to x if expanding it to a shape needs it.
template <class T, int R>
constexpr Tensor<T, R> stretch_for(const Tensor<T, R>& x, const shape& to, caller loc) {
  Tensor<T, R> y = x;
  const size_scope scope{x.table(), {"expand", loc}};
  for (int i = 0; i < R && scope.table; ++i) {
    const extent from = scope.find(y.dims()[i]), wanted = to[i + to.rank - R];
    if (!is_known(from) && wanted != -1 && scope.find(wanted) != from)
      y = stretch(y, i, scope.find(wanted), scope);
  }
  return y;
}

}  // namespace detail

/// x broadcast to the given sizes; -1 keeps a size. In compiled code, too, a size may turn out to
/// be 1, or the requested one. Sizes to which x does not broadcast are a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> expand(const Tensor<T, R>& x, const Size (&sizes)[N],
                                                caller loc = here()) {
  static_assert(static_cast<int>(N) >= R, "xla::expand: the result has fewer axes than x");
  const detail::shape to = detail::to_shape(sizes, {"expand", loc}, -1);
  return detail::with_shape<op::expand, static_cast<int>(N)>(detail::stretch_for(x, to, loc), to,
                                                             loc);
}
/// x broadcast to the sizes of another tensor. Sizes to which x does not broadcast are a
/// shape_error.
template <class T, int R, class U, int A>
constexpr Tensor<T, A> expand_as(const Tensor<T, R>& x, const Tensor<U, A>& other,
                                 caller loc = here()) {
  static_assert(A >= R, "xla::expand_as: the other tensor has fewer axes than x");
  return detail::with_shape_of<op::expand, A>(detail::stretch_for(x, other.dims(), loc), other,
                                              loc);
}

}  // namespace xla
