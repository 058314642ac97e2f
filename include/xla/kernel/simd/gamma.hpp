// SPDX-License-Identifier: Apache-2.0
#pragma once

// log gamma, digamma and zeta of one number. math.hpp applies them lane by lane.

#include <cmath>
#include <limits>
#include <numbers>

#include "xla/base/system/math.hpp"

namespace xla::kernel::detail {

using sys::log_gamma;

/// The derivative of log_gamma: recurrence up to 10, then the asymptotic series (Abramowitz and
/// Stegun, 6.3.18); reflection below 0.
inline double digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  double rest = 0;
  if (x < 0) {
    if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
    rest = -std::numbers::pi / std::tan(std::numbers::pi * (x - std::floor(x)));
    x = 1 - x;
  }
  for (; x < 10; ++x) rest -= 1 / x;
  const double z = 1 / (x * x);
  constexpr double series[] = {1. / 12,      -1. / 120, 1. / 252, -1. / 240,
                               1. / 132,     -691. / 32760, 1. / 12};
  double y = 0;
  for (int i = 6; i >= 0; --i) y = (y + series[i]) * z;
  return rest + std::log(x) - 0.5 / x - y;
}

/// The sum of 1 / (q + k)^s over all k >= 0, s > 1 (Hurwitz): at least nine terms, then the
/// Euler-Maclaurin formula.
inline double zeta(double s, double q) {
  if (s == 1) return std::numeric_limits<double>::infinity();
  if (!(s > 1)) return std::numeric_limits<double>::quiet_NaN();
  if (q == std::numeric_limits<double>::infinity()) return 0;
  if (q <= 0) {
    if (std::isinf(q)) return std::numeric_limits<double>::quiet_NaN();
    if (q == std::floor(q)) return std::numeric_limits<double>::infinity();
    if (s != std::floor(s)) return std::numeric_limits<double>::quiet_NaN();
  }
  constexpr double epsilon = std::numeric_limits<double>::epsilon() / 2;
  double sum = std::pow(q, -s), at = q, term = sum;
  for (int i = 0; i < 9 || at <= 9; ++i) {
    term = std::pow(++at, -s);
    sum += term;
    if (std::abs(term) < epsilon * std::abs(sum)) return sum;
  }
  sum += term * at / (s - 1) - term / 2;
  // (2j)! over the Bernoulli number B2j.
  constexpr double divisors[] = {12,
                                 -720,
                                 30240,
                                 -1209600,
                                 47900160,
                                 -1307674368000. / 691,
                                 74724249600,
                                 -10670622842880000. / 3617,
                                 5109094217170944000. / 43867,
                                 -802857662698291200000. / 174611,
                                 14101100039391805440000. / 77683,
                                 -1693824136731743669452800000. / 236364091};
  double factor = 1, k = 0;
  for (const double divisor : divisors) {
    factor *= s + k;
    term /= at;
    const double more = factor * term / divisor;
    sum += more;
    if (std::abs(more) < epsilon * std::abs(sum)) break;
    factor *= s + k + 1;
    term /= at;
    k += 2;
  }
  return sum;
}

}  // namespace xla::kernel::detail
