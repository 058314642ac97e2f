// error: index: index 100 of axis 0 of \(100, 17\) does not exist
#include <xla/xla.hpp>

struct Net {
  xla::nn::Linear a{17, 100};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return x * a.weight[100]; }
  XLA_MODULE(a)
};

void f(Net& net, xla::Tensor<float, 2> x) { xla::compile(net)(x); }
