// SPDX-License-Identifier: Apache-2.0
#pragma once

// Windows of signal processing: hann_window() and others.

#include <numbers>

#include "xla/op/abs.hpp"
#include "xla/op/create.hpp"
#include "xla/op/trigonometric.hpp"

namespace xla {
namespace detail {

/// f of the positions k / n of a window of n elements, or k / (n - 1) if it is not periodic.
template <class T, class F>
constexpr Tensor<T, 1> window(std::int64_t n, bool periodic, F f) {
  static_assert(std::is_floating_point_v<T>, "xla: a window is of float or double");
  if (n == 1) return ones<T>({n});
  return f(arange<T>(n) * (1.0 / static_cast<double>(periodic ? n : n - 1)));
}
/// a - b cos(2 pi t) + c cos(4 pi t).
template <class T>
constexpr Tensor<T, 1> cosine_window(std::int64_t n, bool periodic, double a, double b, double c) {
  return window<T>(n, periodic, [&](const Tensor<T, 1>& t) {
    const double turn = 2 * std::numbers::pi;
    const Tensor<T, 1> one = a - b * cos(t * turn);
    return c == 0 ? one : one + c * cos(t * (2 * turn));
  });
}

}  // namespace detail

/// Windows of n elements for spectra; periodic ones omit the last of n + 1.
template <class T = float>
constexpr Tensor<T, 1> hann_window(std::int64_t n, bool periodic = true) {
  return detail::cosine_window<T>(n, periodic, 0.5, 0.5, 0);
}
template <class T = float>
constexpr Tensor<T, 1> hamming_window(std::int64_t n, bool periodic = true, double alpha = 0.54,
                                      double beta = 0.46) {
  return detail::cosine_window<T>(n, periodic, alpha, beta, 0);
}
template <class T = float>
constexpr Tensor<T, 1> blackman_window(std::int64_t n, bool periodic = true) {
  return detail::cosine_window<T>(n, periodic, 0.42, 0.5, 0.08);
}
template <class T = float>
constexpr Tensor<T, 1> bartlett_window(std::int64_t n, bool periodic = true) {
  return detail::window<T>(n, periodic,
                           [](const Tensor<T, 1>& t) { return 1 - abs(t * 2 - 1); });
}

}  // namespace xla
