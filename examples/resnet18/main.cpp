// SPDX-License-Identifier: Apache-2.0
// Trains ResNet-18 on random images, to see that it learns and how fast it does.
#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include <xla/data/transforms.hpp>
#include <xla/ext/pretrained.hpp>
#include <xla/models/resnet.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

namespace data = xla::data;

struct Options {
  std::string mode = "compiled", weights;
  std::int64_t images = 64, batch = 8, size = 64, steps = 40, log_every = 5;
  double lr = 0.01;
};

constexpr auto step_fn = [](auto& model, auto& images, auto& labels, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(images), labels);
  loss.backward();
  optimizer.step();
  return loss;
};

// Images of noise with labels at random: what there is to learn is which is which.
auto noise(const Options& o) {
  const auto images = xla::randn<float>({o.images, 3, o.size, o.size});
  return data::TransformedDataset{
      data::TensorDataset{images, xla::randint(0, 1000, {o.images})},
      data::Compose{
          data::RandomCrop{
              .size = {o.size, o.size}, .padding = 1, .mode = data::padding_mode::reflect},
          data::RandomHorizontalFlip{}}};
}

template <class Step>
void train(const Options& o, Step step) {
  xla::manual_seed(42);
  xla::models::ResNet18<> model;
  if (!o.weights.empty()) {
    xla::models::load(model, o.weights);
    model.train();
  }
  std::printf("ResNet-18: %lld parameters, %s mode, %d threads\n",
              static_cast<long long>(xla::parameter_count(model)), o.mode.c_str(),
              xla::num_threads());
  xla::optim::SGD optimizer{model, {.lr = o.lr, .momentum = 0.9}};
  data::DataLoader loader{
      noise(o), {.batch_size = o.batch, .shuffle = true, .drop_last = true, .prefetch = 2}};
  const auto report = xla::training::fit(
      model, step, loader, {.steps = o.steps, .log_every = o.log_every, .line = {.unit = "images"}},
      optimizer);
  std::printf("loss: %.3f to %.3f in %lld steps\n", report.losses.value.front(),
              report.losses.value.back(), static_cast<long long>(report.step));
}

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Trains ResNet-18 on random images."};
  const CLI::Range count(std::int64_t{1}, std::int64_t{1} << 20);
  app.add_option("--mode", o.mode)
      ->check(CLI::IsMember({"compiled", "traced", "eager"}))
      ->capture_default_str();
  app.add_option("--weights", o.weights, "torchvision's, a state_dict in safetensors")
      ->check(CLI::ExistingPath);
  app.add_option("--images", o.images)->check(count)->capture_default_str();
  app.add_option("--batch", o.batch)->check(count)->capture_default_str();
  app.add_option("--size", o.size, "Height and width of the images")
      ->check(count)
      ->capture_default_str();
  app.add_option("--steps", o.steps)->check(count)->capture_default_str();
  app.add_option("--log-every", o.log_every, "Steps between readings of the loss")
      ->check(count)
      ->capture_default_str();
  app.add_option("--lr", o.lr)->check(CLI::Range(1e-12, 1e9))->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  try {
    xla::eager_mode(o.mode != "traced");
    if (o.mode == "compiled") train(o, xla::compile(step_fn, {.name = "resnet18_step"}));
    else train(o, step_fn);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "resnet18: %s\n", e.what());
    return 1;
  }
}
