// What bfloat16 is not for.
// error: the element types of the tensors, .+ and .+, differ; convert one: xla::cast<float>\(x\)
// error: small updates vanish in parameters of bfloat16; train a model of float, in xla::autocast
#include <xla/xla.hpp>

using half = xla::bfloat16;

auto beside(xla::Tensor<half, 1> x, xla::Tensor<float, 1> y) { return x + y; }
auto before(xla::Tensor<float, 1> x, xla::Tensor<half, 1> y) { return x * y; }
auto product(xla::Tensor<half, 2> x, xla::Tensor<float, 2> y) { return matmul(x, y); }
auto chosen(xla::Tensor<half, 1> x, xla::Tensor<float, 1> y) { return where(x > 0, x, y); }
void trained(xla::nn::BasicLinear<half>& m) { xla::optim::SGD{m, {.lr = 0.1}}; }
