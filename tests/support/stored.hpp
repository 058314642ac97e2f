// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/reference.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/tensor/state.hpp"

namespace test {

/// A parameter that holds numbers(sizes, seed).
template <std::size_t N>
xla::Parameter<float, static_cast<int>(N)> parameter(const xla::Size (&sizes)[N],
                                                     std::uint64_t seed = 0) {
  const auto values = numbers<float>(sizes, seed);
  auto p = xla::Parameter<float, static_cast<int>(N)>::like(values);
  p.copy_(values);
  return p;
}

/// The elements against numbers of a reference, whatever the sizes.
template <int R>
void check_stored(const xla::Tensor<float, R>& got, const std::vector<double>& want,
                  double tolerance = 3e-6) {
  check_elements(got.data(), got.numel(), std::vector<float>(want.begin(), want.end()), tolerance,
                 1);
}

}  // namespace test
