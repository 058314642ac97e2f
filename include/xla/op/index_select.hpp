// SPDX-License-Identifier: Apache-2.0
#pragma once

// index_select(), index_add() and index_copy(): an index for each slice. Single elements are in
// gather.hpp.

#include "xla/op/gather.hpp"
#include "xla/op/methods.hpp"

namespace xla::op {

/// The base of ops that write slices of a source to a copy of x, at an index along an axis.
struct slicing {
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool updates = true;
  using attributes = indexed::attributes;
  static constexpr shape shape_of(const shape_rule& r) {
    const int axis = r.attributes<slicing>().axis;
    for (int i = 0; i < r.in[0].rank; ++i) {
      detail::extent e = i == axis ? r.in[1][0] : r.in[0][i];
      if (!r.sizes.equal(e, r.in[2][i]))
        r.sizes.fail(detail::text("a source of shape ")
                     << r.in[2] << " does not fit an index of shape " << r.in[1]
                     << " into a tensor of shape " << r.in[0] << " along axis " << axis);
    }
    return r.in[0];
  }
};

/// Adds each slice, in the order of the source.
struct index_add : slicing {
  static constexpr auto name = "index_add";
  static constexpr bool computes = true;
  static constexpr void gradient(auto& g) {
    if (g.needs(0)) g.to(0, g.grad());
    if (g.needs(2))
      g.to(2, select_along(g.grad(), g.attributes().axis, g.template in<std::int64_t>(1)));
  }
};

/// Replaces slices by the source's; of several for one index the last counts.
struct index_copy : slicing {
  static constexpr auto name = "index_copy";
  static constexpr void gradient(auto& g) {
    const auto index = g.template in<std::int64_t>(1);
    const shape source = g.in(2).dims();
    const auto none = detail::zeros_of(g.grad(), source);
    if (g.needs(0))
      g.to(0, detail::put_along<index_copy>(g.grad(), g.attributes().axis, index, none));
    if (g.needs(2)) {
      const auto picked = select_along(g.grad(), g.attributes().axis, index);
      g.to(2,
           xla::where(stays(index, g.attributes().axis, source, g.in(0).size(g.attributes().axis)),
                      picked, 0));
    }
  }

 private:
  // Of several slices for one index only the last has a gradient: true there, in source's rank.
  template <class I>
  static constexpr detail::any_tensor<bool> stays(const detail::any_tensor<I>& index, int axis,
                                                  const shape& source, Size count) {
    const auto order = detail::indices_along<std::int64_t>(index, 0);
    shape line, all;
    line.push(count.extent());
    for (int i = 0; i < source.rank; ++i) all.push(i == axis ? source[i] : 1);
    const auto last = detail::put_along<index_copy>(detail::zeros_of(index, line), 0, index, order);
    return reshape_to(select_along(last, 0, index) == order, all);
  }
};

/// The slices at an index of one axis along an axis.
struct index_select {
  static constexpr auto name = "index_select";
  static constexpr bool picks = true;
  static constexpr op_kind kind = op_kind::library;
  using attributes = indexed::attributes;
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    s[r.attributes<index_select>().axis] = r.in[1][0];
    return s;
  }
  static constexpr void gradient(auto& g) {
    const auto none = detail::zeros_of(g.grad(), g.in(0).dims());
    g.to(0, detail::put_along<index_add>(none, g.attributes().axis, g.template in<std::int64_t>(1),
                                         g.grad()));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::index_add, numbers);
XLA_OP(xla::op::index_copy, all);
XLA_OP(xla::op::index_select, all);

namespace xla {
namespace detail {
/// index_select with an index that is known to be in range.
template <class T, int R>
constexpr Tensor<T, R> select_along(const Tensor<T, R>& x, int axis, const handle& index) {
  return apply<op::index_select, T, T, R>(with<op::index_select>({axis}), x, index);
}
/// put_along in x's own memory, at run time; false if someone else may see it.
template <class Op, class T, int R>
bool put_in_place(Tensor<T, R>& x, int axis, const Tensor<std::int64_t, 1>& index,
                  const Tensor<T, R>& source, caller loc) {
  node n = with<Op>({axis});
  n.op = &info_of<Op, T, T>;
  n.type = dtype_of<T>;
  const shape_rule rule{{nullptr, {Op::name, loc}}, n, {x.dims(), index.dims(), source.dims()}, 3};
  n.set_shape(Op::shape_of(rule));
  const handle* const parts[] = {&index, &source};
  return machine_of<T>::update(x, n, parts, 2);
}
}  // namespace detail

/// The slices of x along an axis at an index (n), in its order. An index outside [0, size) is an
/// index_error. The gradient adds up at the slices that were used.
template <class T, int R>
constexpr Tensor<T, R> index_select(const Tensor<T, R>& x, int axis,
                                    const Tensor<std::int64_t, 1>& index, caller loc = here()) {
  static_assert(R >= 1, "xla::index_select: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"index_select", loc});
  return detail::select_along(x, at, check_index<op::index_select>(index, x.size(at), loc));
}

/// x with the source's slices added at an index (n) along an axis, in the order of the source.
/// Sizes that do not match are a shape_error, an index that does not exist an index_error.
template <class T, int R>
constexpr Tensor<T, R> index_add(const Tensor<T, R>& x, int axis,
                                 const Tensor<std::int64_t, 1>& index, const Tensor<T, R>& source,
                                 caller loc = here()) {
  static_assert(R >= 1, "xla::index_add: needs at least one axis");
  static_assert(!std::is_same_v<T, bool>, "xla::index_add: needs numbers, not bool; cast first");
  const int at = detail::axis_of(x, R, axis, {"index_add", loc});
  return detail::put_along<op::index_add>(x, at, check_index<op::index_add>(index, x.size(at), loc),
                                          source, loc);
}

/// x with the slices at an index (n) along an axis replaced by the source's. Of several for one
/// index the last counts, and it alone has a gradient. The errors are those of index_add.
template <class T, int R>
constexpr Tensor<T, R> index_copy(const Tensor<T, R>& x, int axis,
                                  const Tensor<std::int64_t, 1>& index, const Tensor<T, R>& source,
                                  caller loc = here()) {
  static_assert(R >= 1, "xla::index_copy: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"index_copy", loc});
  return detail::put_along<op::index_copy>(
      x, at, check_index<op::index_copy>(index, x.size(at), loc), source, loc);
}

template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::index_copy_(int axis, const Tensor<std::int64_t, 1>& index,
                                                  const Tensor& source, caller loc)
  requires(R > 0)
{
  if (!__builtin_is_constant_evaluated()) {
    const int at = detail::axis_of(*this, R, axis, {"index_copy_", loc});
    const auto checked = check_index<op::index_copy>(index, size(at), loc);
    if (detail::put_in_place<op::index_copy>(*this, at, checked, source, loc)) return *this;
  }
  detail::rebind(*this, xla::index_copy(*this, axis, index, source, loc),
                 {"index_copy_", loc});
  return *this;
}

}  // namespace xla
