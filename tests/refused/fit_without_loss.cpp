// error: xla::training::fit: the step function has to return its loss
#include <vector>

#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

void f(xla::nn::Linear& model, std::vector<xla::Tensor<float, 2>>& loader) {
  xla::training::fit(model, [](auto& m, auto& x) { m(x); }, loader, {.epochs = 2});
}
