// SPDX-License-Identifier: Apache-2.0
#pragma once

// take_along_dim(), one_hot() and masked_fill(), composed of other ops.

#include "xla/op/compare.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/where.hpp"

namespace xla {
namespace detail {
/// x reshaped to the given sizes, unless it has them.
template <int To, class T, int R>
constexpr Tensor<T, To> broadcast_to(const Tensor<T, R>& x, const shape& s) {
  if constexpr (To == R)
    if (x.dims() == s) return x;
  return with_shape<op::expand, To>(x, s);
}

struct take_along_dim_name {
  static constexpr auto name = "take_along_dim";
};
struct one_hot_name {
  static constexpr auto name = "one_hot";
};
}  // namespace detail

/// gather with broadcasting of the other axes: take_along_dim(x, argsort(x, 1), 1). An index
/// outside [0, size) is an index_error.
template <class T, int R, int I>
constexpr Tensor<T, R> take_along_dim(const Tensor<T, R>& x, const Tensor<std::int64_t, I>& index,
                                      int axis, caller loc = here()) {
  static_assert(R >= 1 && R == I, "xla::take_along_dim: x and index need the same number of axes");
  const detail::call_site site{"take_along_dim", loc};
  const int at = detail::axis_of(x, R, axis, site);
  const auto checked = check_index<detail::take_along_dim_name>(index, x.size(at), loc);
  detail::shape from = x.dims(), to = index.dims();
  const detail::extent size = from[at], count = to[at];
  from[at] = to[at] = 1;
  from = to = detail::size_scope{x.table() ? x.table() : index.table(), site}.broadcast(from, to);
  from[at] = size;
  to[at] = count;
  return detail::gather_along(detail::broadcast_to<R>(x, from), at,
                              detail::broadcast_to<R>(checked, to));
}

/// A new last axis of the given size with 1 at each index, 0 elsewhere. An index outside [0,
/// classes) is an index_error.
template <class I, int R>
constexpr Tensor<I, R + 1> one_hot(const Tensor<I, R>& index, Size classes, caller loc = here()) {
  static_assert(std::is_same_v<I, std::int64_t>, "xla::one_hot: the index must be of std::int64_t");
  const auto checked = check_index<detail::one_hot_name>(index, classes, loc);
  return cast<I>(unsqueeze(checked, -1) == arange<I>(classes));
}

/// x with a number where a mask is true; both broadcast. Sizes that do not broadcast are a
/// shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> masked_fill(const Tensor<T, A>& x,
                                                        const Tensor<bool, B>& mask,
                                                        detail::number_of<T> value,
                                                        caller loc = here()) {
  detail::check_broadcast({"masked_fill", loc}, x, mask);
  return where(mask, value.element(x.table()), x, loc);
}

}  // namespace xla
