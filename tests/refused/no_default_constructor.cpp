// error: xla::compile: .*default constructor
#include <xla/xla.hpp>

struct Net {
  xla::nn::Linear a;
  explicit constexpr Net(int n) : a{n, n} {}
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return a(x); }
  XLA_MODULE(a)
};

void f(Net& net, xla::Tensor<float, 2> x) { xla::compile(net)(x); }
