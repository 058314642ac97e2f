// SPDX-License-Identifier: Apache-2.0
#pragma once

// norm() and logsumexp(): reductions of other ops.

#include <limits>

#include "xla/op/abs.hpp"
#include "xla/op/derived/statistics.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/relu.hpp"

namespace xla {
namespace detail {

struct norm_over {
  static constexpr auto name = "norm";
  double p = 2;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    static_assert(floating_type<T>, "xla::norm: needs float or double; cast first");
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (p == 2) return root_of_squares(reduce<op::sum>(x * x, axes));
    if (p == 1) return reduce<op::sum>(abs(x), axes);
    if (p == 0) return reduce<op::sum>(cast<T>(x != 0), axes);
    if (p == infinity) return relu(reduce<op::max>(abs(x), axes));  // of nothing 0
    if (p == -infinity) return reduce<op::min>(abs(x), axes);
    const auto total = reduce<op::sum>(pow(abs(x), p), axes);
    const auto zero = total == 0;
    return where(zero, 0, pow(where(zero, 1, total), 1 / p));
  }
};

struct logsumexp_over {
  static constexpr auto name = "logsumexp";
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, axis_set axes) const {
    static_assert(floating_type<T>, "xla::logsumexp: needs float or double; cast first");
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const auto top = reduce<op::max>(x, axes).detach();
    const auto shift = where(abs(top) == infinity, 0, top);
    const auto total = reduce<op::sum>(exp(x - shift), axes);
    const auto nothing = total == 0;
    return where(nothing, -infinity, log(where(nothing, 1, total)) + shift);
  }
};

}  // namespace detail

/// The p-norm of all elements, or over the given axes, which xla::keepdim keeps with size 1: the
/// p-th root of the sum of |x|^p; the largest |x| for infinity, the number of nonzero elements for
/// 0. The gradient is 0 where the norm is. An axis that does not exist or is repeated is a
/// shape_error.
template <class T, int R>
constexpr Tensor<T, 0> norm(const Tensor<T, R>& x, double p = 2) {
  return detail::over_all(x, detail::norm_over{p});
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R - static_cast<int>(N)> norm(const Tensor<T, R>& x, double p,
                                                  const int (&axes)[N], caller loc = here()) {
  return detail::over_axes(x, axes, detail::norm_over{p}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> norm(const Tensor<T, R>& x, double p, const int (&axes)[N], keepdim_t,
                            caller loc = here()) {
  return detail::over_axes_keepdim(x, axes, detail::norm_over{p}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R - static_cast<int>(N)> norm(const Tensor<T, R>& x, const int (&axes)[N],
                                                  caller loc = here()) {
  return norm(x, 2, axes, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> norm(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                            caller loc = here()) {
  return norm(x, 2, axes, keepdim, loc);
}

/// The logarithm of the sum of exp(x), shifted by the largest element so that nothing overflows: of
/// all elements, or over the given axes, which xla::keepdim keeps with size 1. -infinity for no
/// elements, or if all are -infinity. An axis that does not exist or is repeated is a shape_error.
template <class T, int R>
constexpr Tensor<T, 0> logsumexp(const Tensor<T, R>& x) {
  return detail::over_all(x, detail::logsumexp_over{});
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R - static_cast<int>(N)> logsumexp(const Tensor<T, R>& x, const int (&axes)[N],
                                                       caller loc = here()) {
  return detail::over_axes(x, axes, detail::logsumexp_over{}, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> logsumexp(const Tensor<T, R>& x, const int (&axes)[N], keepdim_t,
                                 caller loc = here()) {
  return detail::over_axes_keepdim(x, axes, detail::logsumexp_over{}, loc);
}

}  // namespace xla
