// error: item\(\) \(or a tensor used as a co.*return the tensor.*xla::where
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return v * sum(v).item(); });
  g(x);
}
