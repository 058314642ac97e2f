// SPDX-License-Identifier: Apache-2.0
#pragma once

// scatter_reduce(): products, means and extremes of elements with the same index. Sums are
// scatter_add(), in gather.hpp.

#include <string_view>

#include "xla/op/compare.hpp"
#include "xla/op/derived/indexing.hpp"
#include "xla/op/floor_divide.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/minmax.hpp"

namespace xla::op {

/// Multiplies elements by the source's. The other elements' gradients are right even with a factor
/// of 0, because the divisor is never 0.
struct scatter_prod : scattering {
  static constexpr auto name = "scatter_prod";
  static constexpr bool computes = true;
  static constexpr auto combine(auto a, auto b) { return a * b; }
  static constexpr void gradient(auto& g) {
    using T = typename decltype(g.grad())::value_type;
    const int axis = g.attributes().axis;
    const auto index = g.template in<std::int64_t>(1);
    const auto x = g.in(0), source = g.in(2);
    const shape all = source.dims();
    if (g.needs(0)) {
      const auto factor = xla::where(x == 0, 1, x);
      const auto product = detail::put_along<scatter_prod>(factor, axis, index, source);
      g.to(0, g.grad() * product / factor);
    }
    if (!g.needs(2)) return;
    const auto zero = source == 0;
    const auto none = detail::zeros_of(g.grad(), x.dims());
    const auto zeros = detail::put_along<scatter_add>(none, axis, index, xla::cast<T>(zero));
    const auto alone = zero && detail::gather_into(zeros, axis, index, all) == 1;
    const auto others =
        detail::put_along<scatter_prod>(x, axis, index, xla::where(alone, 1, source));
    const auto of_zero = detail::gather_into(g.grad() * others, axis, index, all);
    const auto of_rest = detail::gather_into(g.grad() * g.out(), axis, index, all);
    g.to(2, xla::where(alone, of_zero, of_rest / xla::where(zero, 1, source)));
  }
};

/// The base of ops that keep the largest or the smallest element; equal ones share the gradient.
template <class Op>
struct scatter_best : scattering {
  static constexpr bool computes = true;
  static constexpr void gradient(auto& g) {
    using T = typename decltype(g.grad())::value_type;
    const int axis = g.attributes().axis;
    const auto index = g.template in<std::int64_t>(1);
    const auto source = g.in(2);
    const auto own = xla::cast<T>(g.in(0) == g.out());
    const auto best = detail::gather_into(g.out(), axis, index, source.dims());
    const auto hits = xla::cast<T>(source == best);
    const auto count = detail::put_along<scatter_add>(own, axis, index, hits);
    const auto share = g.grad() / xla::where(count == 0, 1, count);
    if (g.needs(0)) g.to(0, own * share);
    if (g.needs(2)) g.to(2, hits * detail::gather_into(share, axis, index, source.dims()));
  }
};
struct scatter_amax : scatter_best<scatter_amax> {
  static constexpr auto name = "scatter_amax";
  static constexpr auto combine(auto a, auto b) { return a != a || a > b ? a : b; }
};
struct scatter_amin : scatter_best<scatter_amin> {
  static constexpr auto name = "scatter_amin";
  static constexpr auto combine(auto a, auto b) { return a != a || a < b ? a : b; }
};

}  // namespace xla::op

XLA_OP(xla::op::scatter_prod, numbers);
XLA_OP(xla::op::scatter_amax, numbers);
XLA_OP(xla::op::scatter_amin, numbers);

namespace xla {
namespace detail {

struct scatter_reduce_name {
  static constexpr auto name = "scatter_reduce";
};

/// The mean of the values for each index, with its own element if that counts; integers are rounded
/// down.
template <class T, int R>
constexpr Tensor<T, R> scatter_mean(const Tensor<T, R>& from, int axis,
                                    const Tensor<std::int64_t, R>& index,
                                    const Tensor<T, R>& source, bool include_self) {
  const auto total = put_along<op::scatter_add>(from, axis, index, source);
  const auto own = full_like(from, include_self ? T{1} : T{});
  const auto count = put_along<op::scatter_add>(own, axis, index, ones_like(source));
  const auto by = where(count == 0, T{1}, count);
  if constexpr (floating_type<T>) return total / by;
  else return floor_divide(total, by);
}

}  // namespace detail

/// x with elements at an index along an axis combined with the source's, like scatter_add, by
/// "sum", "prod", "mean", "amax" or "amin". With include_self = false x's own elements count only
/// where the source has none. Equal extremes share the gradient. Another word is an xla::error;
/// other errors are those of scatter.
template <class T, int R, int I>
constexpr Tensor<T, R> scatter_reduce(const Tensor<T, R>& x, int axis,
                                      const Tensor<std::int64_t, I>& index,
                                      const Tensor<T, I>& source, std::string_view reduce,
                                      bool include_self = true, caller loc = here()) {
  static_assert(R >= 1 && R == I,
                "xla::scatter_reduce: x, index and source need the same number of axes");
  static_assert(!std::is_same_v<T, bool>,
                "xla::scatter_reduce: needs numbers, not bool; cast first");
  using function = detail::scatter_reduce_name;
  const int at = detail::axis_of(x, R, axis, {function::name, loc});
  const auto indices = check_index<function>(index, x.size(at), loc);
  const auto start = [&](T identity) {
    if (include_self) return x;
    const auto from = detail::fill_shape<T, R>(Tensor<T, 0>(identity), index.dims(), index.table());
    return detail::put_along<op::scatter>(x, at, indices, from, loc);
  };
  if (reduce == "sum")
    return detail::put_along<op::scatter_add>(start(0), at, indices, source, loc);
  if (reduce == "prod")
    return detail::put_along<op::scatter_prod>(start(1), at, indices, source, loc);
  if (reduce == "mean") return detail::scatter_mean(start(0), at, indices, source, include_self);
  if (reduce == "amax")
    return detail::put_along<op::scatter_amax>(start(op::max::identity<T>), at, indices, source,
                                               loc);
  if (reduce == "amin")
    return detail::put_along<op::scatter_amin>(start(op::min::identity<T>), at, indices, source,
                                               loc);
  refuse_now(x, "scatter_reduce: reduce is one of sum, prod, mean, amax and amin");
  return x;
}

}  // namespace xla
