// SPDX-License-Identifier: Apache-2.0
// What compares gradients, once for all tests.
#include "support/gradient.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace test {

void check_differences(std::size_t input, const std::vector<double>& analytic,
                       std::vector<double> v, number_of f) {
  REQUIRE(analytic.size() == v.size());
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double old = v[k];
    const auto difference = [&](double h) {
      h *= std::max(1.0, std::abs(old));
      v[k] = old + h;
      const double up = f(v);
      v[k] = old - h;
      const double down = f(v);
      v[k] = old;
      return (up - down) / (2 * h);
    };
    const auto near = [&](double numeric) {
      return std::abs(numeric - analytic[k]) <= 1e-6 * std::max(1.0, std::abs(numeric));
    };
    if (near(difference(1e-5))) continue;
    // Where third derivatives are large: Richardson's extrapolation.
    const double numeric = (4 * difference(5e-5) - difference(1e-4)) / 3;
    if (near(numeric)) continue;
    std::ostringstream s;
    s.precision(17);
    s << "input " << input << ", element " << k << ": the gradient is " << analytic[k]
      << ", differences give " << numeric;
    FAIL_CHECK(s.str());
    break;
  }
  SUCCEED();
}

}  // namespace test
