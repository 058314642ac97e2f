// SPDX-License-Identifier: Apache-2.0
#pragma once

// var() and std(). mean() is a reduction, in op/reduce.hpp.

#include "xla/op/derived/over_axes.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/root.hpp"

namespace xla {

/// The number that var and std subtract from the number of elements by which they divide: 1 makes
/// the estimate of a variance unbiased, 0 is the variance of the elements themselves. var(x, {1},
/// xla::correction(0)).
struct correction {
  int value;
  constexpr explicit correction(int n) : value(n) {}
};

namespace detail {

/// The square root of a sum of squares: the gradient where it is 0 is 0.
template <class T, int R>
constexpr Tensor<T, R> root_of_squares(const Tensor<T, R>& x) {
  const auto zero = x == 0;
  return where(zero, 0, sqrt(where(zero, 1, x)));
}

struct variance_over {
  static constexpr auto name = "var";
  correction less;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    static_assert(floating_type<T>, "xla::var and xla::std: need float or double; cast first");
    const Tensor<T, 0> n = number<T>(count_over(x, axes)).tensor();
    const auto d = x - (reduce<op::sum>(x, axes) / n).detach();
    // Corrects for the rounding of the mean by the sum of the remainders. The mean needs no
    // gradient: moving it does not change the result.
    const auto rest = reduce<op::sum>(d, axes);
    const auto squares = reduce<op::sum>(d * d, axes) - rest * rest / n;
    return (squares - minimum(squares, 0).detach()) / maximum(n - less.value, 0);
  }
};

struct deviation_over {
  static constexpr auto name = "std";
  correction less;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    return root_of_squares(variance_over{less}(x, axes));
  }
};

}  // namespace detail

/// The variance over all elements, or over the given axes, which xla::keepdim keeps with size 1:
/// var(x, {1}, xla::keepdim). NaN for too few elements. Accurate even if the mean is far larger. An
/// axis that does not exist or is repeated is a shape_error.
template <class T, int R>
constexpr Tensor<T, 0> var(const Tensor<T, R>& x, correction less = correction(1)) {
  return detail::over_all(x, detail::variance_over{less});
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R - static_cast<int>(N)> var(const Tensor<T, R>& x, const int (&axes)[N],
                                                 correction less = correction(1),
                                                 caller loc = here()) {
  return detail::over_axes(x, axes, detail::variance_over{less}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> var(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                           correction less = correction(1), caller loc = here()) {
  return detail::over_axes_keepdim(x, axes, detail::variance_over{less}, loc);
}

/// The standard deviation, like var; write xla::std, as std alone is a namespace. Its gradient is 0
/// where it is 0. It has the same errors.
template <class T, int R>
constexpr Tensor<T, 0> std(const Tensor<T, R>& x, correction less = correction(1)) {
  return detail::over_all(x, detail::deviation_over{less});
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R - static_cast<int>(N)> std(const Tensor<T, R>& x, const int (&axes)[N],
                                                 correction less = correction(1),
                                                 caller loc = here()) {
  return detail::over_axes(x, axes, detail::deviation_over{less}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> std(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                           correction less = correction(1), caller loc = here()) {
  return detail::over_axes_keepdim(x, axes, detail::deviation_over{less}, loc);
}

}  // namespace xla
