// SPDX-License-Identifier: Apache-2.0
#pragma once

// An op that returns its input after a check of every element. Distributions check their parameters
// with it; shape rules check sizes.

#include "xla/op/op.hpp"

namespace xla::op {

/// The input itself, after a check that every element is between two numbers or equals one; else an
/// error. NaN is not between them.
struct check_between {
  static constexpr auto name = "check_between";
  static constexpr auto words = "is out of bounds";
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool check = true;
  struct attributes {
    double low = 0;
    double high = 0;
    XLA_ATTRIBUTES(low, high)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
  static constexpr void gradient(auto& g) { g.to(0, g.grad()); }
};

}  // namespace xla::op

XLA_OP(xla::op::check_between, fractions);

namespace xla::detail {

/// The same op on behalf of a function: the error has its name and words.
template <class Function>
struct check_between_of : op::check_between {};

}  // namespace xla::detail

namespace xla {

/// x, each element of which must be in [low, high]; else an xla::error that begins with
/// Function::name, says Function::words and names the line of loc. Gradients pass through.
template <class Function, class T, int R>
constexpr Tensor<T, R> check_between(const Tensor<T, R>& x, double low, double high,
                                     caller loc = here()) {
  static_assert(floating_type<T>, "xla::check_between: needs float or double; cast first");
  detail::node n = detail::with<op::check_between>({low, high});
  n.at = loc;
  return detail::apply<detail::check_between_of<Function>, T, T, R>(n, x);
}

}  // namespace xla
