// SPDX-License-Identifier: Apache-2.0
// 11. Weights that are there: load a file, classify a picture, train a new head. A small network
// that learns drawn digits stands for one of <xla/models/> and the file that torchvision has of it.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <xla/data/resize.hpp>
#include <xla/data/transforms.hpp>
#include <xla/ext/image.hpp>
#include <xla/ext/pretrained.hpp>
#include <xla/ext/safetensors.hpp>
#include <xla/models/head.hpp>
#include <xla/xla.hpp>

#include "digits.hpp"

namespace data = xla::data;
namespace nn = xla::nn;

template <int Classes = 10>  // what a compiled step has to know is in the type
struct Net {
  nn::Conv2d<3, 1, 1> conv1{1, 16}, conv2{16, 32};
  nn::Linear fc{1568, Classes};
  constexpr auto operator()(const xla::Tensor<float, 4>& images) const {  // (batch, 1, 28, 28)
    auto strokes = xla::max_pool2d(xla::relu(conv1(images)), 2);          // (batch, 16, 14, 14)
    return fc(xla::flatten<1>(xla::max_pool2d(xla::relu(conv2(strokes)), 2)));
  }
  XLA_MODULE(conv1, conv2, fc)
};

constexpr auto step_fn = [](auto& model, auto& images, auto& classes, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(images), classes);
  loss.backward();
  optimizer.step();
  return loss;
};

// Learns for some epochs, and gives the part of the images that the network then knows.
template <class Model>
double learn(Model& model, const Digits& digits, int epochs, double lr) {
  xla::optim::AdamW optimizer{model, {.lr = lr}};
  auto step = xla::compile(step_fn, {.name = "step"});
  data::DataLoader loader{digits, {.batch_size = 50, .shuffle = true}};
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (auto& [images, classes] : loader) step(model, images, classes, optimizer);
  const auto [images, classes] = digits.batch(xla::arange(digits.size()).to_vector());
  return xla::mean(xla::cast<float>(xla::argmax(model(images), 1) == classes)).item();
}

int main() try {
  xla::eager_mode(true);
  xla::manual_seed(42);
  const auto digits = draw_digits(500, 3);
  {
    Net<> first;
    const double knows = learn(first, digits, 4, 3e-3);
    xla::ext::write_safetensors("11_weights.safetensors", {xla::state_dict(first), {}});
    std::printf("11_weights.safetensors: %.0f %% of the digits\n", 100 * knows);
    //> % of the digits
  }

  // Load: one line, for a file or a folder of torchvision's, timm's or Hugging Face's, as of
  // xla::models::ResNet50<>. Names and sizes are compared first; what does not fit is one sentence.
  Net<> model;
  xla::models::load(model, "11_weights.safetensors");
  Net<2> even_or_odd;
  try {
    xla::models::load(even_or_odd, "11_weights.safetensors");
  } catch (const xla::error& e) {
    std::printf("%s\n", e.what());
    //> fc.weight
  }

  // Classify: a file as torchvision's transforms prepare it, then what a compiled call makes of it.
  const auto [images, classes] = digits.batch({{0}});
  const auto pixels = xla::cast<std::uint8_t>(images * 255).to_vector();
  xla::ext::write_png("11_digit.png", data::resize({28, 28, 1, pixels}, {56, 56}));
  const data::Compose view{data::Resize{28}, data::CenterCrop{{28, 28}}, data::ToTensor{}};
  data::SampleRandom not_random{{}, 0};
  const auto image = view(
      xla::ext::read_image("11_digit.png", {.mode = xla::ext::ImageReadMode::gray}), not_random);
  const auto input = xla::from_blob(image.pixels.data(), {1, 1, 28, 28});
  auto classify = xla::compile([](auto& net, auto& x) {
    net.eval();
    return xla::topk(xla::softmax(net(x), 1), 3);
  });
  const auto [shares, numbers] = xla::no_grad([&] { return classify(model, input); });
  for (std::size_t i = 0; i < 3; ++i)
    std::printf("%5.1f %%: a %lld\n", 100 * static_cast<double>(shares.to_vector()[i]),
                static_cast<long long>(numbers.to_vector()[i]));
  const bool known = numbers.to_vector()[0] == classes.item();
  std::printf("it is a %lld: %s\n", static_cast<long long>(classes.item()), known ? "yes" : "no");
  //> : yes

  // Fine-tune: all but the head comes from the file and stays as it is; the head, which has another
  // size there, is newly initialised and learns.
  xla::models::load(even_or_odd, "11_weights.safetensors", {.ignore_mismatched_sizes = true});
  even_or_odd.train();
  xla::for_each_parameter(even_or_odd, [](auto& p) { p.requires_grad_(false); });
  xla::for_each_parameter(xla::models::head(even_or_odd), [](auto& p) { p.requires_grad_(true); });
  const auto [all_images, all_digits] = digits.batch(xla::arange(500).to_vector());
  const Digits parity{all_images, xla::remainder(all_digits, 2)};
  std::printf("even or odd: %.0f %%\n", 100 * learn(even_or_odd, parity, 4, 1e-2));
  //> even or odd:
  const bool kept = even_or_odd.conv2.weight.to_vector() == model.conv2.weight.to_vector();
  std::printf("the body is %s\n", kept ? "as it was" : "another");
  //> the body is as it was
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "11_pretrained: %s\n", e.what());
  return 1;
}
