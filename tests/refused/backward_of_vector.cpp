// error: xla: backward\(\) of a tensor of float with 1 axis: grad can be implicitly created only for scalar outputs
#include <xla/xla.hpp>

void f(xla::nn::Linear& m, xla::Tensor<float, 2>& x, xla::Tensor<std::int64_t, 1>& y) {
  xla::compile([](auto& m, auto& x, auto& y) {
    auto loss = xla::cross_entropy(m(x), y, xla::reduction::none);
    loss.backward();
    return loss;
  })(m, x, y);
}
