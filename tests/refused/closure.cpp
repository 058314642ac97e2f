// error: xla::compile: the function has captures or data; pass what it uses as arguments
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  float scale = 2;
  auto g = xla::compile([scale](auto& v) { return v * scale; });
  g(x);
}
