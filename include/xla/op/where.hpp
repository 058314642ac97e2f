// SPDX-License-Identifier: Apache-2.0
#pragma once

// where(): selects between two tensors, element by element.

#include "xla/op/arithmetic.hpp"
#include "xla/op/compare.hpp"

namespace xla {
template <class T, int C, int A>
constexpr detail::broadcast_tensor<T, C, A> where(const Tensor<bool, C>& c, const Tensor<T, A>& a,
                                                  detail::number_of<T> b, caller loc = here());
template <class T, int C, int B>
constexpr detail::broadcast_tensor<T, C, B> where(const Tensor<bool, C>& c, detail::number_of<T> a,
                                                  const Tensor<T, B>& b, caller loc = here());
}  // namespace xla

namespace xla::op {

struct where : map {
  static constexpr auto name = "where";
  static constexpr bool chooses = true;  // the first operand is a mask
  static constexpr auto kernel(auto c, auto a, auto b) { return c.select(a, b); }
  static constexpr void gradient(auto& g) {
    const auto c = g.template in<bool>(0);
    if (g.needs(1)) g.to(1, xla::where(c, g.grad(), 0));
    if (g.needs(2)) g.to(2, xla::where(c, 0, g.grad()));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::where, all);

namespace xla {

/// a where c is true, b elsewhere; all three broadcast. Either value may be a number. Sizes that do
/// not broadcast are a shape_error.
template <class T, int C, int A, int B>
constexpr detail::broadcast_tensor<T, C, A, B> where(const Tensor<bool, C>& c,
                                                     const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                     caller loc = here()) {
  using Result = detail::broadcast_tensor<T, C, A, B>;
  return detail::apply_at<op::where, T, T, Result::rank>(loc, detail::plain, c, a, b);
}
template <class T, int C, int A>
constexpr detail::broadcast_tensor<T, C, A> where(const Tensor<bool, C>& c, const Tensor<T, A>& a,
                                                  detail::number_of<T> b, caller loc) {
  detail::require_truth(a, b);
  return where(c, a, b.element(a.table()), loc);
}
template <class T, int C, int B>
constexpr detail::broadcast_tensor<T, C, B> where(const Tensor<bool, C>& c, detail::number_of<T> a,
                                                  const Tensor<T, B>& b, caller loc) {
  detail::require_truth(b, a);
  return where(c, a.element(b.table()), b, loc);
}

template <element T, int C>
constexpr Tensor<T, C> where(const Tensor<bool, C>& c, T a, T b) {
  return where(c, detail::constant(a), detail::constant(b));
}

}  // namespace xla
