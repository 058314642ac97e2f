// error: grad: every input must require a gradient: call requires_grad_\(\) on it before the loss is computed from it
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return xla::grad(sum(v * v), v); });
  g(x);
}
