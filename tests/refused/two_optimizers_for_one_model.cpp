// error: the model of this optimizer could be several modules among the arguments; say which with xla::part
#include <xla/xla.hpp>
namespace nn = xla::nn;

struct Gan {
  nn::Linear generator{4, 4}, discriminator{4, 4};
  XLA_MODULE(generator, discriminator)
};

void f(Gan& gan, xla::Tensor<float, 2> x, xla::optim::SGD<nn::Linear>& optimizer) {
  auto g = xla::compile([](auto& m, auto& v, auto& o) {
    auto loss = sum(m.generator(v));
    loss.backward();
    o.step();
    return loss;
  });
  g(gan, x, optimizer);
}
