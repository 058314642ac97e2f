// error: a tensor is called as if it were a model: are the arguments in the order in which
#include <xla/xla.hpp>

void f(xla::nn::Linear& m, xla::Tensor<float, 2> x) {
  auto g = xla::compile([](auto& m, auto& x) { return m(x); });
  g(x, m);
}
