// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "support/reference.hpp"

namespace test {

struct moments {
  double mean = 0, std = 0, low = HUGE_VAL, high = -HUGE_VAL;
};
template <int R>
moments moments_of(const xla::Tensor<float, R>& t) {
  moments m;
  const auto v = t.to_vector();
  const auto n = static_cast<double>(v.size());
  for (float x : v) {
    m.mean += x / n;
    m.low = std::min<double>(m.low, x);
    m.high = std::max<double>(m.high, x);
  }
  for (float x : v) m.std += (x - m.mean) * (x - m.mean) / n;
  m.std = std::sqrt(m.std);
  return m;
}

/// That a weight's elements have this mean, deviation and, unless normal, bound.
template <int R>
void check_moments(const xla::Tensor<float, R>& t, double mean, double std, double low = -HUGE_VAL,
                   double high = HUGE_VAL) {
  const moments m = moments_of(t);
  CHECK(m.mean == Approx(mean).margin(0.05 * std));
  CHECK(m.std == Approx(std).epsilon(0.05));
  CHECK(m.low >= low);
  CHECK(m.high <= high);
  if (high < HUGE_VAL) CHECK(m.high > high - 0.05 * (high - low));
  if (low > -HUGE_VAL) CHECK(m.low < low + 0.05 * (high - low));
}

/// The same of a uniform weight within a bound.
template <int R>
void check_uniform(const xla::Tensor<float, R>& t, double bound) {
  check_moments(t, 0, bound / std::sqrt(3.0), -bound, bound);
}

}  // namespace test
