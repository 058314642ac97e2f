// SPDX-License-Identifier: Apache-2.0
#include "images_task.hpp"
#include "training.hpp"

// PyTorch's example for MNIST, without dropout.
struct Convnet {
  xla::nn::Conv2d<3> conv1{1, 32}, conv2{32, 64};
  xla::nn::Linear fc1{9216, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 4> x) const {
    auto parts = xla::max_pool2d(xla::relu(conv2(xla::relu(conv1(x)))), 2);
    return fc2(xla::relu(fc1(xla::flatten<1>(parts))));
  }
  XLA_MODULE(conv1, conv2, fc1, fc2)
};

int main(int argc, char** argv) {
  return bench::serve_training<bench::image_training<Convnet, 64, 1, 28, 10, 16, 5>>(argc, argv);
}
