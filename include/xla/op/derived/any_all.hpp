// SPDX-License-Identifier: Apache-2.0
#pragma once

// any() and all(), composed of other ops.

#include "xla/op/derived/over_axes.hpp"

namespace xla {
namespace detail {

struct any_over {
  static constexpr auto name = "any";
  template <class T, int R>
  constexpr Tensor<bool, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    return reduce<op::max>(cast<std::uint8_t>(cast<bool>(x)), axes) > 0;
  }
};

struct all_over {
  static constexpr auto name = "all";
  template <class T, int R>
  constexpr Tensor<bool, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    return reduce<op::min>(cast<std::uint8_t>(cast<bool>(x)), axes) > 0;
  }
};

}  // namespace detail

/// Whether any element is true, or not 0: of all, or over the given axes, which xla::keepdim keeps
/// with size 1. Of an empty tensor: false. An axis that does not exist or is repeated is a
/// shape_error.
template <class T, int R>
constexpr Tensor<bool, 0> any(const Tensor<T, R>& x) {
  return detail::over_all(x, detail::any_over{});
}
template <class T, int R, std::size_t N>
constexpr Tensor<bool, R - static_cast<int>(N)> any(const Tensor<T, R>& x, const int (&axes)[N],
                                                    caller loc = here()) {
  return detail::over_axes(x, axes, detail::any_over{}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<bool, R> any(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                              caller loc = here()) {
  return detail::over_axes_keepdim(x, axes, detail::any_over{}, loc);
}

/// Whether every element is true, or not 0. Of an empty tensor: true. An axis that does not exist
/// or is repeated is a shape_error.
template <class T, int R>
constexpr Tensor<bool, 0> all(const Tensor<T, R>& x) {
  return detail::over_all(x, detail::all_over{});
}
template <class T, int R, std::size_t N>
constexpr Tensor<bool, R - static_cast<int>(N)> all(const Tensor<T, R>& x, const int (&axes)[N],
                                                    caller loc = here()) {
  return detail::over_axes(x, axes, detail::all_over{}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<bool, R> all(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                              caller loc = here()) {
  return detail::over_axes_keepdim(x, axes, detail::all_over{}, loc);
}

}  // namespace xla
