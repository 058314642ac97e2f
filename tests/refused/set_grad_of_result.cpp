// error: set_grad: the tensor was computed from others and collects no gradients
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    auto y = v * 2;
    y.set_grad(v);
    return y;
  });
  g(x);
}
