// SPDX-License-Identifier: Apache-2.0
// A program that links the interpreter: it is chosen, it runs, it is counted.
#include <vector>

#include <xla/xla.hpp>

int main() {
  xla::eager_mode(true);
  auto step = xla::compile([](auto& x) {
    auto loss = xla::sum(x * x);
    loss.backward();
    return loss;
  });
  auto x = xla::tensor<float>({1, 2, 3});
  x.requires_grad_();
  const float planned = step(x).item();
  xla::set_backend("interpreter");
  const float interpreted = step(x).item();
  xla::set_backend("native");
  return planned == 14 && interpreted == 14 && xla::counter_value("Backend::interpreter") == 1 &&
                 x.grad().to_vector() == std::vector<float>{4, 8, 12}
             ? 0
             : 1;
}
