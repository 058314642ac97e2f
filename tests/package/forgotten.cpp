// SPDX-License-Identifier: Apache-2.0
// Linked to a program with a backend by a target that does not name the backend's.
#include <xla/xla.hpp>

float sum_of_squares(xla::Tensor<float, 1>& x) {
  static auto f = xla::compile([](auto& x) { return xla::sum(x * x); });
  return f(x).item();
}
