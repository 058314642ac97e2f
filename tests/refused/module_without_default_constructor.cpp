// error: every argument's type needs a default constructor, from which its structure is known; sizes that vary belong into the type as template parameters
#include <xla/xla.hpp>

struct Layer {
  xla::nn::Linear inner;
  explicit Layer(int n) : inner(n, n) {}
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const { return inner(x); }
  XLA_MODULE(inner)
};

void f(Layer& layer, xla::Tensor<float, 2> x) {
  auto g = xla::compile(layer);
  g(x);
}
