// SPDX-License-Identifier: Apache-2.0
#pragma once

// argmax() and argmin(): indices of the best elements along an axis. They have no gradient.

#include "xla/op/reduce.hpp"

namespace xla::op {

/// The base of ops that find the first best element along an axis, which stays with size 1.
struct arg_best {
  static constexpr op_kind kind = op_kind::library;
  static constexpr auto accepts = detail::axes_rule::any;
  struct attributes {
    detail::axis_number axis{};
    XLA_ATTRIBUTES(axis)
  };
  static constexpr shape find(const shape_rule& r, std::string_view sentence) {
    const int axis = r.attributes<arg_best>().axis;
    shape s = r.in[0];
    r.sizes.nonzero(s[axis], sentence);
    s[axis] = 1;
    return s;
  }
};

struct argmax : arg_best {
  static constexpr auto name = "argmax";
  static constexpr bool better(auto a, auto b) { return a > b; }
  static constexpr shape shape_of(const shape_rule& r) {
    return find(r, "argmax: the axis has no elements");
  }
};

struct argmin : arg_best {
  static constexpr auto name = "argmin";
  static constexpr bool better(auto a, auto b) { return a < b; }
  static constexpr shape shape_of(const shape_rule& r) {
    return find(r, "argmin: the axis has no elements");
  }
};

}  // namespace xla::op

XLA_OP(xla::op::argmax, positions);
XLA_OP(xla::op::argmin, positions);

namespace xla {
namespace detail {
template <class Op, class T, int R>
constexpr Tensor<std::int64_t, R> find_best(const Tensor<T, R>& x, int axis, caller loc) {
  static_assert(R >= 1, "xla::argmax and argmin: need at least one axis; flatten(x) makes one");
  const int at = axis_of(x, R, axis, {Op::name, loc});
  return apply_at<Op, std::int64_t, T, R>(loc, with<Op>({at}), x);
}
template <class Op, class T, int R>
constexpr Tensor<std::int64_t, R - 1> find_best_index(const Tensor<T, R>& x, int axis, caller loc) {
  const int at = axis_of(x, R, axis, {Op::name, loc});
  return drop_axes<R - 1, std::int64_t>(find_best<Op>(x, at, loc), axis_set::one(at));
}
}  // namespace detail

/// The index of the largest element along an axis (the first of equal ones; NaN counts as largest).
/// max, or gather with the index of keepdim, gives the elements themselves. An axis that does not
/// exist, or has size 0, is a shape_error.
template <class T, int R>
constexpr Tensor<std::int64_t, R> argmax(const Tensor<T, R>& x, int axis, keepdim_t,
                                         caller loc = here()) {
  return detail::find_best<op::argmax>(x, axis, loc);
}
template <class T, int R>
constexpr Tensor<std::int64_t, R - 1> argmax(const Tensor<T, R>& x, int axis = -1,
                                             caller loc = here()) {
  return detail::find_best_index<op::argmax>(x, axis, loc);
}

/// The index of the smallest element along an axis (the first of equal ones; NaN counts as
/// smallest). It has the same errors.
template <class T, int R>
constexpr Tensor<std::int64_t, R> argmin(const Tensor<T, R>& x, int axis, keepdim_t,
                                         caller loc = here()) {
  return detail::find_best<op::argmin>(x, axis, loc);
}
template <class T, int R>
constexpr Tensor<std::int64_t, R - 1> argmin(const Tensor<T, R>& x, int axis = -1,
                                             caller loc = here()) {
  return detail::find_best_index<op::argmin>(x, axis, loc);
}

}  // namespace xla
