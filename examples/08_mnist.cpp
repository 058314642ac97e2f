// SPDX-License-Identifier: Apache-2.0
// 8. MNIST: 08_mnist [<images> <labels> [compiled|traced|eager]], IDX files, also .gz where zlib
// was found. Without files it learns digits that it draws.
#include <cstdio>
#include <exception>
#include <string>

#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

#include "digits.hpp"

namespace nn = xla::nn;

struct Mlp {
  nn::Linear fc1{784, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 4> images) const {  // (batch, 1, 28, 28)
    return fc2(xla::relu(fc1(xla::flatten<1>(images))));
  }
  XLA_MODULE(fc1, fc2)
};

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& loss_fn, auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(data);
  auto loss = loss_fn(logits, target);
  loss.backward();
  optimizer.step();
  return loss;
};

constexpr auto correct_fn = [](auto& model, auto& data, auto& target) {
  return xla::sum(xla::cast<float>(xla::argmax(model(data), 1) == target));
};

// Trains on four fifths of the images and returns the share of the others that it knows.
template <class Step, class Correct>
double train(const Digits& digits, Step step, Correct correct) {
  const auto [training, held_out] = split_digits(digits);
  xla::data::DataLoader loader{training,
                               {.batch_size = 64, .shuffle = true, .seed = 42, .prefetch = 2}};
  xla::data::DataLoader others{held_out, {.batch_size = 500}};
  xla::manual_seed(42);
  Mlp model;
  nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  const auto accuracy = [&] {
    double sum = 0;
    for (auto& [data, target] : others)
      sum += static_cast<double>(correct(model, data, target).item());
    return sum / static_cast<double>(others.dataset().size());
  };
  const auto report = xla::training::fit(model, step, loader,
                                      {.epochs = 8,
                                       .line = {.unit = "images"},
                                       .validate = accuracy,
                                       .validation_name = "accuracy",
                                       .higher_is_better = true},
                                      loss_fn, optimizer);
  std::printf("accuracy on %lld held-out images: %.2f %%\n",
              static_cast<long long>(others.dataset().size()), 100 * report.validation);
  //> accuracy on 800 held-out images:
  return report.validation;
}

int main(int argc, char** argv) try {
  const std::string mode = argc > 3 ? argv[3] : "compiled";
  xla::eager_mode(mode != "traced");
  const auto digits = argc > 2 ? read_digits(argv[1], argv[2]) : draw_digits(4000);
  const double reached = mode == "compiled"
                             ? train(digits, xla::compile(step_fn, {.name = "mnist_step"}),
                                     xla::compile(correct_fn, {.name = "mnist_correct"}))
                             : train(digits, step_fn, correct_fn);
  return reached > 0.9 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "08_mnist: %s\n", e.what());
  return 1;
}
