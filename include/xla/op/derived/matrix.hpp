// SPDX-License-Identifier: Apache-2.0
#pragma once

// addmv(), baddbmm(), matrix_power(), cov(), rot90() and other functions of matrices, composed of
// other ops.

#include <utility>

#include "xla/op/clip.hpp"
#include "xla/op/derived/diagonal.hpp"
#include "xla/op/derived/linalg.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/derived/statistics.hpp"
#include "xla/op/derived/triangle.hpp"
#include "xla/op/root.hpp"
#include "xla/op/slice.hpp"

namespace xla {

/// beta x + alpha a b of a matrix (n, m) and a vector (m); x is (n) or broadcasts to it.
template <class T, int R>
constexpr Tensor<T, 1> addmv(const Tensor<T, R>& x, const Tensor<T, 2>& a, const Tensor<T, 1>& b,
                             double beta = 1, double alpha = 1, caller loc = here()) {
  return x * beta + mv(a, b, loc) * alpha;
}
/// beta x + alpha times the outer product of a (n) and b (m); x broadcasts to (n, m).
template <class T, int R>
constexpr Tensor<T, 2> addr(const Tensor<T, R>& x, const Tensor<T, 1>& a, const Tensor<T, 1>& b,
                            double beta = 1, double alpha = 1) {
  return x * beta + outer(a, b) * alpha;
}
/// beta x + alpha a b of matrices (batch, n, k) and (batch, k, m); x broadcasts to (batch, n, m).
template <class T, int R>
constexpr Tensor<T, 3> baddbmm(const Tensor<T, R>& x, const Tensor<T, 3>& a, const Tensor<T, 3>& b,
                               double beta = 1, double alpha = 1, caller loc = here()) {
  return x * beta + bmm(a, b, loc) * alpha;
}
/// beta x + alpha times the sum of all products a b of (batch, n, k) and (batch, k, m): (n, m).
template <class T, int R>
constexpr Tensor<T, 2> addbmm(const Tensor<T, R>& x, const Tensor<T, 3>& a, const Tensor<T, 3>& b,
                              double beta = 1, double alpha = 1, caller loc = here()) {
  return x * beta + sum(bmm(a, b, loc), {0}) * alpha;
}

/// The product of n matrices x, n from 0 on. Throws `xla::error` for n < 0.
template <class T>
constexpr Tensor<T, 2> matrix_power(const Tensor<T, 2>& x, int n, caller loc = here()) {
  if (n < 0)
    detail::size_scope{x.table(), {"matrix_power", loc}}.fail(detail::text("n is ")
                                                              << n << ", below 0");
  if (n <= 0) return detail::with_table(eye<T>(x.size(0), x.size(1)), x.table());
  Tensor<T, 2> square = x, power;
  for (bool begun = false;; square = matmul(square, square, loc)) {
    if (n & 1) power = begun ? matmul(power, square, loc) : square, begun = true;
    if ((n >>= 1) == 0) return power;
  }
}

/// The covariance of variables (rows) over observations (columns), divided by one less than their
/// number.
template <class T>
constexpr Tensor<T, 2> cov(const Tensor<T, 2>& x) {
  static_assert(floating_type<T>, "xla::cov: needs float or double; cast first");
  const auto centered = x - mean(x, {1}, keepdim);
  return matmul(centered, transpose(centered)) / (x.size(1) - 1);
}

/// The correlation of variables (rows) over observations (columns): the covariance over both
/// deviations, in [-1, 1].
template <class T>
constexpr Tensor<T, 2> corrcoef(const Tensor<T, 2>& x) {
  const auto c = cov(x);
  const auto deviation = sqrt(diagonal(c));
  return clamp(c / unsqueeze(deviation, 1) / deviation, -1, 1);
}

/// The p-norm of x - y, broadcast. Sizes that do not broadcast are a shape_error.
template <class T, int A, int B>
constexpr Tensor<T, 0> dist(const Tensor<T, A>& x, const Tensor<T, B>& y, double p = 2,
                            caller loc = here()) {
  return norm(detail::map_binary<op::sub, T>(x, y, loc), p);
}

/// A matrix rotated by k quarter turns, from the first axis to the second.
template <class T>
constexpr Tensor<T, 2> rot90(const Tensor<T, 2>& x, int k = 1) {
  switch (k & 3) {
    case 1: return flip(transpose(x), {0});
    case 2: return flip(x, {0, 1});
    case 3: return flip(transpose(x), {1});
    default: return x;
  }
}

/// The least and the largest element.
template <class T, int R>
constexpr std::pair<Tensor<T, 0>, Tensor<T, 0>> aminmax(const Tensor<T, R>& x) {
  return {min(x), max(x)};
}
/// The variance of all elements, divided by one less than their number, and their mean.
template <class T, int R>
constexpr std::pair<Tensor<T, 0>, Tensor<T, 0>> var_mean(const Tensor<T, R>& x) {
  return {var(x), mean(x)};
}
/// The standard deviation of all elements, as in var_mean(), and their mean.
template <class T, int R>
constexpr std::pair<Tensor<T, 0>, Tensor<T, 0>> std_mean(const Tensor<T, R>& x) {
  return {xla::std(x), mean(x)};
}

}  // namespace xla
