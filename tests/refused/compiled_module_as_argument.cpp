// error: xla::compile: a compiled module cannot be an argument; pass the module itself
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 2>& x) {
  xla::nn::Linear model{3, 2};
  auto predict = xla::compile(model);
  auto step = xla::compile([](auto& g, auto& a) { return g(a); });
  return step(predict, x);
}
