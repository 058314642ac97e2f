// error: matmul: cannot multiply \(\?, 100\) by \(5, 33\) transposed: inner sizes 100 and 33 differ .*, in module b
#include <xla/xla.hpp>

struct Net {
  xla::nn::Linear a{17, 100}, b{33, 5};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return b(a(x)); }
  XLA_MODULE(a, b)
};

void f(Net& net, xla::Tensor<float, 2> x) { xla::compile(net)(x); }
