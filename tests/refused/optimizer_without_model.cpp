// error: an optimizer's model is not among the arguments; pass it
#include <xla/xla.hpp>

void f(xla::optim::SGD<xla::nn::Linear>& optimizer) {
  auto g = xla::compile([](auto& o) { o.step(); });
  g(optimizer);
}
