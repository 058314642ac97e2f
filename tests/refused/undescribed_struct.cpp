// error: the members of this struct are not described: write XLA_MODULE\(member, \.\.\.\) at its end
#include <xla/xla.hpp>

struct Net {
  xla::nn::Linear a{17, 33};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return a(x); }
};

void f(Net& net, xla::Tensor<float, 2> x) {
  auto g = xla::compile([](auto& n, auto& v) { return n(v); });
  g(net, x);
}
