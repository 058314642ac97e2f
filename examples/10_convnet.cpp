// SPDX-License-Identifier: Apache-2.0
// 10. Convolutions: 10_convnet [<folder with MNIST's files> [compiled|traced|eager]] learns digits
// that are moved about, and draws its filters and its mistakes. Without files it draws its digits.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <xla/data/padding.hpp>
#include <xla/data/transforms.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

#include "digits.hpp"
#include "picture.hpp"

namespace data = xla::data;
namespace nn = xla::nn;

struct ConvNet {
  nn::Conv2d<3, 1, 1> conv1{1, 32}, conv2{32, 64};  // kernels of 3, stride 1, padding 1
  nn::BatchNorm2d bn1{32}, bn2{64};
  nn::Linear fc1{3136, 128}, fc2{128, 10};
  nn::Dropout dropout{0.5};
  constexpr auto operator()(xla::Tensor<float, 4> images) const {      // (batch, 1, 28, 28)
    auto strokes = xla::max_pool2d(xla::relu(bn1(conv1(images))), 2);  // (batch, 32, 14, 14)
    auto parts = xla::max_pool2d(xla::relu(bn2(conv2(strokes))), 2);   // (batch, 64, 7, 7)
    return fc2(dropout(xla::relu(fc1(xla::flatten<1>(parts)))));
  }
  XLA_MODULE(conv1, conv2, bn1, bn2, fc1, fc2, dropout)
};

constexpr auto step_fn = [](auto& model, auto& images, auto& digits, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(images), digits);
  loss.backward();
  optimizer.step();
  return loss;
};
constexpr auto read_fn = [](auto& model, auto& images) {
  model.eval();
  return xla::argmax(model(images), 1);
};

template <class Step, class Read>
double train(const SomeDigits& training, const SomeDigits& held_out, Step step, Read read) {
  // Another window of each image in every epoch, by seed, epoch and image alone.
  const data::RandomCrop moved{.size = {28, 28}, .padding = 2};
  data::DataLoader loader{
      data::TransformedDataset{training, moved},
      {.batch_size = 32, .shuffle = true, .seed = 42, .drop_last = true, .prefetch = 2}};
  // The last batch is as large as the others, so that nothing is specialised for another size.
  data::DataLoader others{held_out, {.batch_size = 200}, data::pad_last};
  xla::manual_seed(42);
  ConvNet model;
  xla::optim::AdamW optimizer{model, {.lr = 1e-3}};
  std::vector<std::int64_t> mistakes;  // numbers of held-out images
  std::string said;
  const auto accuracy = [&] {
    mistakes.clear(), said.clear();
    std::int64_t number = 0;
    for (auto& [images, digits, mask] : others) {
      const auto is = digits.to_vector(), seems = read(model, images).to_vector();
      const auto counts = mask.to_vector();
      for (std::size_t i = 0; i < is.size(); ++i, ++number)
        if (counts[i] && is[i] != seems[i]) {
          mistakes.push_back(number);
          said += ' ' + std::to_string(is[i]) + " as " + std::to_string(seems[i]) + ',';
        }
    }
    return 1 - static_cast<double>(mistakes.size()) / static_cast<double>(held_out.size());
  };
  const auto report = xla::training::fit(
      model, step, loader,
      {.epochs = training.size() < 1000 ? 3 : 15,
       .line = {.unit = "images"},
       .validate = accuracy,
       .validation_name = "accuracy",
       .higher_is_better = true,
       .schedule = [&](const auto& at) { optimizer.options.lr = 1e-3 * (1 - at.part); }},
      optimizer);
  write_pgm("10_filters.pgm", model.conv1.weight, 8, 16);
  write_pgm("10_mistakes.pgm", held_out.batch(mistakes).first, 10, 3);
  std::printf("10_filters.pgm: the first layer; 10_mistakes.pgm: digits read%s\n", said.c_str());
  std::printf("accuracy on %lld held-out images: %.2f %%\n",
              static_cast<long long>(held_out.size()), 100 * report.validation);
  //> accuracy on 200 held-out images:
  return report.validation;
}

int main(int argc, char** argv) try {
  const std::string mode = argc > 2 ? argv[2] : "compiled";
  xla::eager_mode(mode != "traced");
  const auto [training, held_out] =
      argc > 1 ? read_folder(argv[1]) : split_digits(draw_digits(1000, 3));
  const double reached = mode == "compiled" ? train(training, held_out,
                                                    xla::compile(step_fn, {.name = "convnet_step"}),
                                                    xla::compile(read_fn, {.name = "convnet_read"}))
                                            : train(training, held_out, step_fn, read_fn);
  return reached > 0.9 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "10_convnet: %s\n", e.what());
  return 1;
}
