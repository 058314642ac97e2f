// SPDX-License-Identifier: Apache-2.0
#include <xla/xla.hpp>

// Backward through what a compiled function returned.
float two() {
  auto twice = xla::compile([](auto& x) { return x * 2; });
  auto x = xla::ones<float>({3});
  x.requires_grad_();
  xla::sum(twice(x)).backward();
  return xla::sum(x.grad()).item();
}
