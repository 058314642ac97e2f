// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/stored.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/run/state/mode.hpp"

namespace test {

/// A loss f(x, reduction) against a reference: of each element, mean and sum, gradient of the mean.
template <int R, class F>
void check_loss(const xla::Parameter<float, R>& x, F f, const std::vector<double>& none,
                const std::vector<double>& mean_sum, const std::vector<double>& gradient) {
  const xla::eager_mode_guard eager;
  auto p = x;
  check_stored(f(p, xla::reduction::none), none);
  check_stored(f(p, xla::reduction::sum), {mean_sum[1]});
  auto mean = f(p, xla::reduction::mean);
  check_stored(mean, {mean_sum[0]});
  mean.backward();
  check_stored(p.grad(), gradient);
}

}  // namespace test
