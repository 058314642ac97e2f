// SPDX-License-Identifier: Apache-2.0
// mnist_parallel [<folder with MNIST's files> [<devices> [<epochs>]]]: the program of PyTorch/XLA's
// guide, on several devices. With 0 devices it runs without XLA; without files it draws its digits.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include <xla/parallel.hpp>
#include <xla/xla.hpp>

#include "digits.hpp"

namespace nn = xla::nn;
namespace optim = xla::optim;

struct Mnist {
  nn::Conv2d<5> conv1{1, 10}, conv2{10, 20};
  nn::BatchNorm2d bn1{10}, bn2{20};
  nn::Linear fc1{320, 50}, fc2{50, 10};
  constexpr auto operator()(xla::Tensor<float, 4> images) const {      // (batch, 1, 28, 28)
    auto x = bn1(xla::relu(xla::max_pool2d(conv1(images), 2)));        // (batch, 10, 12, 12)
    x = bn2(xla::relu(xla::max_pool2d(conv2(x), 2)));                  // (batch, 20, 4, 4)
    return xla::log_softmax(fc2(xla::relu(fc1(xla::flatten<1>(x)))));  // (batch, 10)
  }
  XLA_MODULE(conv1, bn1, conv2, bn2, fc1, fc2)
};

constexpr double lr = 0.01, momentum = 0.5;

constexpr auto train_loop_fn = [](auto& model, auto& loader, const auto&, auto& context) {
  nn::NLLLoss loss_fn;
  auto& optimizer = context.getattr_or("optimizer", [&] {
    return optim::SGD{model, {.lr = lr, .momentum = momentum}};
  });
  model.train();
  for (auto& [data, target] : loader) {
    optimizer.zero_grad();
    auto output = model(data);
    auto loss = loss_fn(output, target);
    loss.backward();
    xla::optimizer_step(optimizer);
  }
};

// How many images a device knows, of how many.
constexpr auto test_loop_fn = [](auto& model, auto& loader, const auto&, auto&) {
  model.eval();
  std::pair<std::int64_t, std::int64_t> known{0, 0};
  for (auto& [data, target] : loader) {
    const auto output = model(data);
    known.first += xla::sum(xla::cast<std::int64_t>(xla::argmax(output, 1) == target)).item();
    known.second += target.sizes()[0];
  }
  return known;
};

int main(int argc, char** argv) try {
  const int count = argc > 2 ? std::atoi(argv[2]) : 2;
  const int num_epochs = argc > 3 ? std::atoi(argv[3]) : 10;
  if (count > 0) xla::set_device_count(count);
  const auto [training, held_out] =
      argc > 1 && *argv[1] ? read_folder(argv[1]) : split_digits(draw_digits(1940, 3));
  xla::manual_seed(42);
  xla::data::DataLoader train_loader{training, {.batch_size = 32, .shuffle = true, .seed = 42}};
  xla::data::DataLoader test_loader{held_out, {.batch_size = 50}};

  auto devices = xla::get_xla_supported_devices();
  if (count == 0) devices.clear();
  xla::parallel::DataParallel model_parallel(Mnist{}, devices);
  double accuracy = 0;
  for (int epoch = 1; epoch <= num_epochs; ++epoch) {
    model_parallel(train_loop_fn, train_loader);
    const auto dropped = model_parallel.dropped();
    std::int64_t correct = 0, asked = 0;
    for (const auto& known : model_parallel(test_loop_fn, test_loader)) {
      correct += known.first;
      asked += known.second;
    }
    accuracy = static_cast<double>(correct) / static_cast<double>(asked);
    std::printf("epoch %d: accuracy %.2f %%; %lld batches left over\n", epoch, 100 * accuracy,
                static_cast<long long>(dropped));
  }
  std::printf("%zu devices, accuracy at the end: %.2f %%\n", devices.size(), 100 * accuracy);
  return accuracy > 0.9 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "mnist_parallel: %s\n", e.what());
  return 1;
}
