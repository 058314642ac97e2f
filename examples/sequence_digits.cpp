// SPDX-License-Identifier: Apache-2.0
// MNIST row by row: an LSTM reads an image as 28 steps of 28 pixels, and its last state says which
// digit that was.
//   sequence_digits [<folder with MNIST's files> [epochs]]; without files it draws digits
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <xla/nn/recurrent.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

#include "digits.hpp"

namespace nn = xla::nn;

struct RowReader {
  nn::LSTM<nn::LSTMConfig{.input_size = 28, .hidden_size = 64, .batch_first = true}> lstm;
  nn::Linear head{64, 10};
  constexpr auto operator()(const xla::Tensor<float, 4>& images) const {  // (batch, 1, 28, 28)
    const auto [h, c] = lstm(xla::squeeze<1>(images)).second;
    return head(xla::select(h, 0, 0));
  }
  XLA_MODULE(lstm, head)
};

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& loss_fn, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = loss_fn(model(data), target);
  loss.backward();
  xla::optim::clip_grad_norm_(model, 1);
  optimizer.step();
  return loss;
};

constexpr auto correct_fn = [](auto& model, auto& data, auto& target) {
  return xla::sum(xla::cast<float>(xla::argmax(model(data), 1) == target));
};

int main(int argc, char** argv) try {
  const auto [training, held_out] =
      argc > 1 ? read_folder(argv[1]) : split_digits(draw_digits(4000, 3));
  xla::data::DataLoader loader{training,
                               {.batch_size = 32, .shuffle = true, .seed = 42, .prefetch = 2}};
  xla::data::DataLoader others{held_out, {.batch_size = 500}};
  xla::manual_seed(42);
  RowReader model;
  nn::CrossEntropyLoss loss_fn;
  xla::optim::Adam optimizer{model, {.lr = 1e-2f}};
  auto correct = xla::compile(correct_fn, {.name = "sequence_digits_correct"});
  const auto accuracy = [&] {
    double sum = 0;
    for (auto& [data, target] : others)
      sum += static_cast<double>(correct(model, data, target).item());
    return sum / static_cast<double>(others.dataset().size());
  };
  const auto report =
      xla::training::fit(model, xla::compile(step_fn, {.name = "sequence_digits_step"}), loader,
                         {.epochs = argc > 2 ? std::atoi(argv[2]) : 8,
                          .line = {.unit = "images"},
                          .validate = accuracy,
                          .validation_name = "accuracy",
                          .higher_is_better = true},
                         loss_fn, optimizer);
  std::printf("accuracy on %lld held-out images: %.2f %%\n",
              static_cast<long long>(others.dataset().size()), 100 * report.validation);
  //> accuracy on 800 held-out images:
  return report.validation > 0.9 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "sequence_digits: %s\n", e.what());
  return 1;
}
