// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "xla/op/clip.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/floor_divide.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/sort.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// The median along an axis of the elements that are not NaN, the lower one of an even number, and
/// where it is: {values, indices}. NaN where none is left. An axis that is not there is a
/// shape_error.
template <class T, int R>
constexpr std::pair<Tensor<T, R - 1>, Tensor<std::int64_t, R - 1>> nanmedian(
    const Tensor<T, R>& x, int axis, caller who = here()) {
  static_assert(R >= 1 && fraction<T>, "xla::nanmedian: needs an axis of float or double");
  const int at = detail::axis_of(x, R, axis, {"nanmedian", who});
  // NaN is sorted behind all numbers.
  const auto count = sum(cast<std::int64_t>(!isnan(x)), {at}, keepdim, who);
  const auto middle = clamp_min(floor_divide(count - 1, 2), 0);
  const auto index = detail::gather_along(argsort(x, at, false, who), at, middle);
  const auto gone = detail::axis_set::one(at);
  return {detail::drop_axes<R - 1, T>(detail::gather_along(x, at, index), gone),
          detail::drop_axes<R - 1, std::int64_t>(index, gone)};
}
/// The same of all elements, without the place. Equal elements share the gradient.
template <class T, int R>
constexpr Tensor<T, 0> nanmedian(const Tensor<T, R>& x, caller who = here()) {
  const Tensor<T, 1> all = reshape(x, {-1});
  const auto middle = nanmedian(all.detach(), 0, who).first;
  const auto equal = all == middle && isfinite(all);
  const auto change = where(equal, all - all.detach(), T{});
  return middle + sum(change) / clamp_min(sum(cast<T>(equal)), 1);
}

}  // namespace xla
