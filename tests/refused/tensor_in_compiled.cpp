// error: a compiled body cannot read numbers from memory: make the tensor outside
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1>& x) {
  auto g = xla::compile([](auto& v) { return v * xla::tensor<float>({1, 2, 3}); });
  g(x);
}
