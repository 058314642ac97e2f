// error: backward\(\) of a value that no parameter or argument went into: nothing requires a gradient
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    auto loss = sum(v.detach());
    loss.backward();
    return loss;
  });
  g(x);
}
