// error: backward\(\) of a value that no parameter or argument went into: nothing requires a gradient
#include <xla/xla.hpp>

void f(xla::nn::Linear& layer, xla::Tensor<float, 2> x) {
  auto g = xla::compile([](auto& m, auto& v) {
    auto loss = sum(xla::cast<float>(argmax(m(v), 1)));
    loss.backward();
    return loss;
  });
  g(layer, x);
}
