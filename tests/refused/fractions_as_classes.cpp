// error: xla::cross_entropy: a floating-point target has the probability of each class
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 2> logits, xla::Tensor<float, 1> target) {
  return cross_entropy(logits, target);
}
