// SPDX-License-Identifier: Apache-2.0
// Linked to a program with an engine by a target that does not name the engine's.
#include <xla/xla.hpp>

float sum_of_squares(xla::Tensor<float, 1>& x) {
  static auto f = xla::compile([](auto& x) { return xla::sum(x * x); });
  return f(x).item();
}
