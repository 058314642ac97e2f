// SPDX-License-Identifier: Apache-2.0
#pragma once

// quantile(), nanquantile() and kthvalue(), by sorting, and histc().

#include <string_view>
#include <utility>

#include "xla/op/clip.hpp"
#include "xla/op/derived/any_all.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/rounding.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/sort.hpp"
#include "xla/op/where.hpp"

namespace xla {
namespace detail {

/// How two sorted neighbours combine for a rank between them.
template <class T, int R>
constexpr Tensor<T, R> between_ranks(const Tensor<T, R>& sorted, const Tensor<T, R>& rank,
                                     std::string_view interpolation) {
  const auto at = [&](const Tensor<T, R>& r) {
    return gather_along(sorted, R - 1, cast<std::int64_t>(r));
  };
  const auto below = floor(rank), above = ceil(rank);
  if (interpolation == "lower") return at(below);
  if (interpolation == "higher") return at(above);
  if (interpolation == "nearest") return at(round(rank));
  if (interpolation != "linear" && interpolation != "midpoint")
    refuse_now(sorted,
               "quantile: interpolation is one of linear, lower, higher, midpoint and nearest");
  const auto weight = interpolation == "midpoint" ? full_like(rank, T(0.5)) : rank - below;
  const auto low = at(below);
  return lerp(low, at(above), weight);
}

/// The quantiles of each row, the last axis: (…, n) and (k) give (…, k). `left_out`: NaN is
/// ignored; else it makes its row's quantiles NaN.
template <class T, int R>
constexpr Tensor<T, R> row_quantiles(const Tensor<T, R>& x, const Tensor<T, 1>& q, bool left_out,
                                     std::string_view interpolation, const call_site& site) {
  static_assert(floating_type<T>, "xla::quantile: needs float or double; cast first");
  const size_scope scope{x.table(), site};
  scope.nonzero(x.dims()[R - 1], "quantile: there are no elements");
  const Tensor<T, R> sorted = sort(x, -1).first;
  const Tensor<T, R> numbers = cast<T>(sorted == sorted);
  const auto last = reduce<op::sum>(numbers, axis_set::one(R - 1)) - 1;
  if (left_out) return between_ranks<T, R>(sorted, q * maximum(last, 0), interpolation);
  // A row with NaN has it at its end, the rank that all of its quantiles then get.
  const Tensor<T, 0> end = number<T>(x.size(R - 1) - 1).tensor();
  const auto rank = where(last < end, end, q * end);
  return between_ranks<T, R>(sorted, rank, interpolation);
}

template <class T>
constexpr Tensor<T, 1> checked_quantile(number<T> q, const handle& x, const call_site& site) {
  if (q.outside(0, 1))
    size_scope{x.table(), site}.fail("q is a share of the elements, from 0 to 1");
  return unsqueeze(q.tensor(), 0);
}

}  // namespace detail

/// The element below which a fraction q of the elements along an axis lies, as in PyTorch: between
/// two neighbours by "linear" interpolation, "lower", "higher", "midpoint" or "nearest". NaN gives
/// NaN. Gradients go to the neighbours. A q that is known to be outside [0, 1], or an axis that
/// does not exist or is empty, is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> quantile(const Tensor<T, R>& x, detail::number_of<T> q, int axis, keepdim_t,
                                std::string_view interpolation = "linear", caller loc = here()) {
  const detail::call_site site{"quantile", loc};
  const int at = detail::axis_of(x, R, axis, site);
  const auto y = detail::row_quantiles(
      movedim(x, at, R - 1), detail::checked_quantile<T>(q, x, site), false, interpolation, site);
  return movedim(y, R - 1, at);
}
template <class T, int R>
constexpr Tensor<T, R - 1> quantile(const Tensor<T, R>& x, detail::number_of<T> q, int axis,
                                    std::string_view interpolation = "linear",
                                    caller loc = here()) {
  return detail::drop_axes<R - 1, T>(
      quantile(x, q, axis, keepdim, interpolation, loc),
      detail::axis_set::one(detail::axis_of(x, R, axis, "quantile")));
}
/// Of all elements.
template <class T, int R>
constexpr Tensor<T, 0> quantile(const Tensor<T, R>& x, detail::number_of<T> q,
                                caller loc = here()) {
  return squeeze<0>(quantile(flatten(x), q, 0, keepdim, "linear", loc));
}
/// Several at once: their axis comes first. Shares outside [0, 1] are an index_error.
template <class T, int R>
constexpr Tensor<T, R> quantile(const Tensor<T, R>& x, const Tensor<T, 1>& q, int axis,
                                std::string_view interpolation = "linear", caller loc = here()) {
  const detail::call_site site{"quantile", loc};
  const int at = detail::axis_of(x, R, axis, site);
  const auto y = detail::row_quantiles(movedim(x, at, R - 1), q, false, interpolation, site);
  return movedim(y, R - 1, 0);
}

/// quantile of the elements that are not NaN; NaN if there are none.
template <class T, int R>
constexpr Tensor<T, R> nanquantile(const Tensor<T, R>& x, detail::number_of<T> q, int axis,
                                   keepdim_t, std::string_view interpolation = "linear",
                                   caller loc = here()) {
  const detail::call_site site{"nanquantile", loc};
  const int at = detail::axis_of(x, R, axis, site);
  const auto y = detail::row_quantiles(
      movedim(x, at, R - 1), detail::checked_quantile<T>(q, x, site), true, interpolation, site);
  return movedim(y, R - 1, at);
}
template <class T, int R>
constexpr Tensor<T, R - 1> nanquantile(const Tensor<T, R>& x, detail::number_of<T> q, int axis,
                                       std::string_view interpolation = "linear",
                                       caller loc = here()) {
  return detail::drop_axes<R - 1, T>(
      nanquantile(x, q, axis, keepdim, interpolation, loc),
      detail::axis_set::one(detail::axis_of(x, R, axis, "nanquantile")));
}
template <class T, int R>
constexpr Tensor<T, 0> nanquantile(const Tensor<T, R>& x, detail::number_of<T> q,
                                   caller loc = here()) {
  return squeeze<0>(nanquantile(flatten(x), q, 0, keepdim, "linear", loc));
}

/// The k-th smallest elements along an axis, counted from 1, and their positions: {values,
/// indices}. Of equal ones the first counts, and it has the gradient; NaN is the largest. A k that
/// is not from 1 to the size, or an axis that does not exist, is a shape_error.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> kthvalue(const Tensor<T, R>& x,
                                                                    std::int64_t k, int axis,
                                                                    keepdim_t,
                                                                    caller loc = here()) {
  static_assert(R >= 1, "xla::kthvalue: needs at least one axis");
  const int at = detail::axis_of(x, R, axis, {"kthvalue", loc});
  const detail::size_scope scope{x.table(), {"kthvalue", loc}};
  if (k < 1 || !scope.at_least(x.dims()[at], k)) {
    scope.fail("k is from 1 to the number of elements along the axis");
    k = 1;
  }
  const auto order = detail::first_in_order(x, at, false, k, loc);
  const auto index = narrow(order, at, k - 1, 1, loc);
  return {detail::gather_along(x, at, index), index};
}
template <class T, int R>
constexpr std::pair<Tensor<T, R - 1>, Tensor<std::int64_t, R - 1>> kthvalue(const Tensor<T, R>& x,
                                                                            std::int64_t k,
                                                                            int axis = -1,
                                                                            caller loc = here()) {
  const auto [values, index] = kthvalue(x, k, axis, keepdim, loc);
  const auto dropped = detail::axis_set::one(detail::axis_of(x, R, axis, "kthvalue"));
  return {detail::drop_axes<R - 1, T>(values, dropped),
          detail::drop_axes<R - 1, std::int64_t>(index, dropped)};
}

/// The number of elements of x in each of `bins` equal parts of [min, max], or from the smallest to
/// the largest element if both are 0. Elements outside, and NaN, are not counted.
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
