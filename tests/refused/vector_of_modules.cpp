// error: a container whose size is known only at run time cannot be part of a model: use std::array
#include <vector>

#include <xla/xla.hpp>

struct Deep {
  std::vector<xla::nn::Linear> layers;
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const { return layers[0](x); }
  XLA_MODULE(layers)
};

void f(Deep& deep, xla::Tensor<float, 2> x) {
  auto g = xla::compile(deep);
  g(x);
}
