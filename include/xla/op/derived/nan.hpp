// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions that handle NaN and infinities: nan_to_num(), nansum(), allclose(), count_nonzero().

#include <limits>
#include <utility>

#include "xla/op/clip.hpp"
#include "xla/op/derived/any_all.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/derived/over_axes.hpp"
#include "xla/op/floor_divide.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/sort.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// True where an element is infinity.
template <class T, int R>
constexpr Tensor<bool, R> isposinf(const Tensor<T, R>& x) {
  if constexpr (floating_type<T>) return x == std::numeric_limits<T>::infinity();
  else return x != x;
}
/// True where an element is -infinity.
template <class T, int R>
constexpr Tensor<bool, R> isneginf(const Tensor<T, R>& x) {
  if constexpr (floating_type<T>) return x == -std::numeric_limits<T>::infinity();
  else return x != x;
}

/// The replacements of nan_to_num for NaN, infinity and -infinity.
template <class T>
struct NanToNumOptions {
  T nan = 0;
  T posinf = std::numeric_limits<T>::max();
  T neginf = std::numeric_limits<T>::lowest();
};
/// x with numbers where it is not finite.
template <class T, int R>
constexpr Tensor<T, R> nan_to_num(const Tensor<T, R>& x,
                                  const std::type_identity_t<NanToNumOptions<T>>& by = {}) {
  static_assert(floating_type<T>, "xla::nan_to_num: needs float or double, as integers are finite");
  return where(isnan(x), by.nan, where(isposinf(x), by.posinf, where(isneginf(x), by.neginf, x)));
}

/// The larger of two elements, broadcast, ignoring NaN in one of them. Equal ones get half of the
/// gradient each. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> fmax(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                 caller loc = here()) {
  detail::check_broadcast({"fmax", loc}, x, y);
  return where(isnan(y), x, where(isnan(x), y, maximum(x, y)));
}
/// The smaller of two elements, in the same way.
template <class T, int A, int B>
constexpr detail::broadcast_tensor<T, A, B> fmin(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                 caller loc = here()) {
  detail::check_broadcast({"fmin", loc}, x, y);
  return where(isnan(y), x, where(isnan(x), y, minimum(x, y)));
}

/// The tolerances of isclose and allclose: |x - y| <= atol + rtol |y|.
struct CloseOptions {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;  ///< whether NaN is close to NaN
};
/// Whether elements are equal, or finite and close, broadcast. Sizes that do not broadcast are a
/// shape_error.
template <class T, int A, int B>
constexpr Tensor<bool, (A > B ? A : B)> isclose(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                                const CloseOptions& how = {},
                                                caller loc = here()) {
  static_assert(floating_type<T>, "xla::isclose: needs float or double; cast first");
  detail::check_broadcast({"isclose", loc}, x, y);
  const auto difference = abs(x - y);
  const auto close = x == y || (isfinite(difference) && difference <= abs(y) * how.rtol + how.atol);
  if (how.equal_nan) return close || (isnan(x) && isnan(y));
  return close;
}
/// Whether all elements are close.
template <class T, int A, int B>
constexpr Tensor<bool, 0> allclose(const Tensor<T, A>& x, const Tensor<T, B>& y,
                                   const CloseOptions& how = {}, caller loc = here()) {
  return all(isclose(x, y, how, loc));
}

namespace detail {

struct nansum_over {
  static constexpr auto name = "nansum";
  template <class T, int R>
  constexpr Tensor<total_type<T>, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    if constexpr (floating_type<T>) return reduce<op::sum>(where(isnan(x), T{}, x), axes);
    else return reduce<op::sum>(total_operand(x), axes);
  }
};

struct nanmean_over {
  static constexpr auto name = "nanmean";
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    return nansum_over{}(x, axes) / reduce<op::sum>(cast<T>(!isnan(x)), axes);
  }
};

struct nonzero_over {
  static constexpr auto name = "count_nonzero";
  template <class T, int R>
  constexpr Tensor<std::int64_t, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    return reduce<op::sum>(cast<std::int64_t>(cast<bool>(x)), axes);
  }
};

}  // namespace detail

/// The sum of the elements that are not NaN: of all, or over the given axes, which xla::keepdim
/// keeps with size 1; for integers and bool their sum, in std::int64_t. An axis that does not exist
/// or is repeated is a shape_error.
template <class T, int R>
constexpr Tensor<detail::total_type<T>, 0> nansum(const Tensor<T, R>& x) {
  return detail::over_all(x, detail::nansum_over{});
}
template <class T, int R, std::size_t N>
constexpr Tensor<detail::total_type<T>, R - static_cast<int>(N)> nansum(const Tensor<T, R>& x,
                                                                        const int (&axes)[N],
                                                                        caller loc = here()) {
  return detail::over_axes(x, axes, detail::nansum_over{}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<detail::total_type<T>, R> nansum(const Tensor<T, R>& x, const int (&axes)[N],
                                                  keepdim_t, caller loc = here()) {
  return detail::over_axes_keepdim(x, axes, detail::nansum_over{}, loc);
}

/// The mean of the elements that are not NaN, in the same forms; NaN if there are none.
template <class T, int R>
constexpr Tensor<T, 0> nanmean(const Tensor<T, R>& x) {
  return detail::over_all(x, detail::nanmean_over{});
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R - static_cast<int>(N)> nanmean(const Tensor<T, R>& x, const int (&axes)[N],
                                                     caller loc = here()) {
  return detail::over_axes(x, axes, detail::nanmean_over{}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> nanmean(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                               caller loc = here()) {
  return detail::over_axes_keepdim(x, axes, detail::nanmean_over{}, loc);
}

/// The number of elements that are not 0, including NaN: of all, or over the given axes.
template <class T, int R>
constexpr Tensor<std::int64_t, 0> count_nonzero(const Tensor<T, R>& x) {
  return detail::over_all(x, detail::nonzero_over{});
}
template <class T, int R, std::size_t N>
constexpr Tensor<std::int64_t, R - static_cast<int>(N)> count_nonzero(const Tensor<T, R>& x,
                                                                      const int (&axes)[N],
                                                                      caller loc = here()) {
  return detail::over_axes(x, axes, detail::nonzero_over{}, loc);
}

/// The median along an axis of the elements that are not NaN, the lower one of an even number, and
/// its position: {values, indices}. NaN if there are none. An axis that does not exist is a
/// shape_error.
template <class T, int R>
constexpr std::pair<Tensor<T, R - 1>, Tensor<std::int64_t, R - 1>> nanmedian(
    const Tensor<T, R>& x, int axis, caller loc = here()) {
  static_assert(R >= 1 && floating_type<T>, "xla::nanmedian: needs an axis of float or double");
  const int at = detail::axis_of(x, R, axis, {"nanmedian", loc});
  // NaN is sorted after all numbers.
  const auto count = sum(cast<std::int64_t>(!isnan(x)), {at}, keepdim, loc);
  const auto middle = clamp_min(floor_divide(count - 1, 2), 0);
  const auto index = detail::gather_along(argsort(x, at, false, loc), at, middle);
  const auto gone = detail::axis_set::one(at);
  return {detail::drop_axes<R - 1, T>(detail::gather_along(x, at, index), gone),
          detail::drop_axes<R - 1, std::int64_t>(index, gone)};
}
/// The same for all elements, without the position. Equal elements share the gradient.
template <class T, int R>
constexpr Tensor<T, 0> nanmedian(const Tensor<T, R>& x, caller loc = here()) {
  const Tensor<T, 1> all = reshape(x, {-1});
  const auto middle = nanmedian(all.detach(), 0, loc).first;
  const auto equal = all == middle && isfinite(all);
  const auto change = where(equal, all - all.detach(), T{});
  return middle + sum(change) / clamp_min(sum(cast<T>(equal)), 1);
}

}  // namespace xla
