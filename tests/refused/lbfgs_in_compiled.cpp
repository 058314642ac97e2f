// error: xla::compile: optim::LBFGS decides by the values of the loss
#include <xla/optim/lbfgs.hpp>
#include <xla/xla.hpp>

void f(xla::nn::Linear& model, xla::optim::LBFGS<xla::nn::Linear>& optimizer,
       xla::Tensor<float, 2> x) {
  auto g = xla::compile([](auto& m, auto& o, auto& v) { o.step([&] { return sum(m(v)); }); });
  g(model, optimizer, x);
}
