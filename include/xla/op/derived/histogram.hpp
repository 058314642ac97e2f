// SPDX-License-Identifier: Apache-2.0
#pragma once

// histc(), of other ops.

#include "xla/op/clip.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/rounding.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// How many elements of x lie in each of `bins` equal parts of [min, max], where both are 0 from
/// the least to the largest element. What lies outside, and NaN, counts nowhere.
template <class T, int R>
constexpr Tensor<T, 1> histc(const Tensor<T, R>& x, std::int64_t bins = 100, double min = 0,
                             double max = 0, caller loc = here()) {
  static_assert(std::is_floating_point_v<T>, "xla::histc: needs float or double; cast first");
  if (bins < 1 || !(min <= max))
    detail::size_scope{x.table(), {"histc", loc}}.fail("needs a bin, and min <= max");
  const Tensor<T, 1> all = reshape(x.detach(), {-1});
  Tensor<T, 0> low(static_cast<T>(min)), high(static_cast<T>(max));
  if (min == 0 && max == 0) low = xla::min(all), high = xla::max(all);
  const Tensor<bool, 0> same = low == high;
  low = where(same, low - 1, low), high = where(same, high + 1, high);
  const auto inside = all >= low && all <= high;
  const auto bin = clamp(floor((all - low) / (high - low) * bins), 0, bins - 1);
  return index_add(zeros<T>({bins}), 0, cast<std::int64_t>(where(inside, bin, T{})),
                   cast<T>(inside), loc);
}

}  // namespace xla
