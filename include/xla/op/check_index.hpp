// SPDX-License-Identifier: Apache-2.0
#pragma once

// An op that returns an index after a check of every element. Functions with indices apply it
// first, so that their kernels need no check.

#include "xla/op/op.hpp"

namespace xla::op {

/// The input itself, after a check that every element is in [0, limit); else an index_error.
struct check_index {
  static constexpr auto name = "check_index";
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool check = true;
  struct attributes {
    detail::size_value limit{};
    XLA_ATTRIBUTES(limit)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
};

}  // namespace xla::op

XLA_OP(xla::op::check_index, indices);

namespace xla::detail {

/// The same op on behalf of a function: the error begins with Function::name.
template <class Function>
struct check_index_of : op::check_index {};

}  // namespace xla::detail

namespace xla {

/// An index, each element of which must be in [0, limit); else an index_error that begins with
/// Function::name and names the line of loc.
template <class Function, int R>
constexpr Tensor<std::int64_t, R> check_index(const Tensor<std::int64_t, R>& index, Size limit,
                                              caller loc = here()) {
  detail::node n = detail::with<op::check_index>({limit.extent()});
  n.at = loc;
  return detail::apply<detail::check_index_of<Function>, std::int64_t, std::int64_t, R>(n, index);
}

/// Refuses a tensor with another size along an axis, now or when the size is known: a shape_error
/// that begins with Function::name and names the line of loc.
template <class Function, class T, int R>
constexpr void check_size(const Tensor<T, R>& x, int axis, Size wanted, caller loc = here()) {
  const detail::size_scope scope{x.table() ? x.table() : wanted.table(), {Function::name, loc}};
  if (detail::extent size = x.size(axis).extent(); !scope.equal(size, wanted.extent()))
    scope.fail(detail::text("a tensor of shape ")
               << x.dims() << ", whose axis " << axis << " has to be " << wanted.extent());
}

}  // namespace xla
