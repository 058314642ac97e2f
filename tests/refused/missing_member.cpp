// error: no member named .+forward
// then: the error above
#include <xla/xla.hpp>

struct Net {
  xla::nn::Linear a{8, 3};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return a(x); }
  XLA_MODULE(a)
};

void f(Net& m, xla::Tensor<float, 2>& x) {
  xla::compile([](auto& m, auto& x) { return m.forward(x); })(m, x);
}
