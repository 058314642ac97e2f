// error: xla: pools that return indices need the header xla/nn/max_unpool.hpp
#include <xla/xla.hpp>

auto use() {
  return xla::nn::MaxPool2d<2, 2, 0, 1, true>()(xla::ones<float>({1, 1, 4, 4})).first;
}
