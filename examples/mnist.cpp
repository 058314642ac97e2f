// SPDX-License-Identifier: Apache-2.0
// Learns digits from IDX files: the first 80 % of the images train, the last 20 % are held out.
#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include <xla/data/loader.hpp>
#include <xla/io/idx.hpp>
#include <xla/io/progress.hpp>
#include <xla/xla.hpp>
#ifdef XLA_HAS_ZLIB
#include <xla/ext/gzip.hpp>
using xla::ext::read_idx;
#else
using xla::io::read_idx;
#endif

namespace nn = xla::nn;

namespace {

struct Mlp {
  nn::Linear fc1{784, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
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

struct Options {
  std::string images, labels, mode = "compiled";
  int epochs = 8;
  std::int64_t batch = 64;
  double lr = 0.1;
  std::uint64_t seed = 42;
};

using Samples = xla::data::TensorDataset<xla::Tensor<float, 2>, xla::Tensor<std::int64_t, 1>>;

void check(bool good, const std::string& path, const std::string& what) {
  if (!good) throw xla::io_error("'" + path + "' " + what);
}

/// Images of 28 x 28 bytes and as many labels, as (training, held-out) samples.
std::pair<Samples, Samples> read_samples(const Options& options) {
  const auto images = read_idx(options.images);
  const auto labels = read_idx(options.labels);
  const auto uint8 = xla::io::idx_type::uint8;
  check(images.type == uint8 && images.sizes.size() == 3 && images.sizes[1] == 28 &&
            images.sizes[2] == 28,
        options.images, "does not hold images of 28 x 28 bytes");
  check(labels.type == uint8 && labels.sizes.size() == 1, options.labels,
        "does not hold one byte per label");
  const auto count = images.sizes[0];
  check(labels.sizes[0] == count, options.labels,
        "has " + std::to_string(labels.sizes[0]) + " labels for " + std::to_string(count) +
            " images");
  check(count >= 5, options.images, "has fewer than the 5 images that a split takes");
  for (const auto label : labels.bytes)
    check(label <= 9, options.labels, "has the label " + std::to_string(label) + ", not 0 to 9");

  const auto part = [&](std::int64_t first, std::int64_t n) {
    const auto pixels = xla::from_blob(images.bytes.data() + first * 784, {n, 784});
    const auto digits = xla::from_blob(labels.bytes.data() + first, {n});
    return Samples{xla::cast<float>(pixels) / 255.0f, xla::cast<std::int64_t>(digits)};
  };
  const auto training = count * 8 / 10;
  return {part(0, training), part(training, count - training)};
}

/// The share of samples whose digit the model names.
template <class Correct>
double accuracy(Mlp& model, const Samples& samples, Correct& correct) {
  double sum = 0;
  xla::data::DataLoader loader{samples, {.batch_size = 500}};
  for (auto& [data, target] : loader)
    sum += static_cast<double>(correct(model, data, target).item());
  return sum / static_cast<double>(samples.size());
}

template <class Step, class Correct>
void train(const Options& options, Step step, Correct correct) {
  const auto [training, held_out] = read_samples(options);
  xla::manual_seed(options.seed);
  Mlp model;
  nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = options.lr, .momentum = 0.9}};
  xla::data::DataLoader loader{
      training, {.batch_size = options.batch, .shuffle = true, .seed = options.seed}};

  double reached = 0;
  xla::io::progress line{{.total = options.epochs * loader.size(), .unit = "images"}};
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    xla::Tensor<float, 0> last;
    for (auto& [data, target] : loader) {
      last = step(model, data, target, loss_fn, optimizer);
      line.advance(data.size(0));
    }
    reached = accuracy(model, held_out, correct);
    line.value("loss", static_cast<double>(last.item()));
    line.value("accuracy", reached);
  }
  line.finish();
  std::printf("accuracy on %lld held-out images: %.2f %%\n",
              static_cast<long long>(held_out.size()), 100 * reached);
}

void run(const Options& options) {
  xla::eager_mode(options.mode != "traced");
  if (options.mode == "compiled") {
    train(options, xla::compile(step_fn, {.name = "mnist_step"}),
          xla::compile(correct_fn, {.name = "mnist_correct"}));
    return;
  }
  train(
      options,
      [](auto&... arguments) {
        auto loss = step_fn(arguments...);
        if (!xla::is_eager_mode()) xla::sync();
        return loss;
      },
      correct_fn);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Learns digits from MNIST's IDX files and says how many held-out ones it knows."};
  app.add_option("--images", options.images, "IDX file of images, plain or .gz")->required();
  app.add_option("--labels", options.labels, "IDX file of labels, plain or .gz")->required();
  app.add_option("--epochs", options.epochs)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--batch", options.batch)->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--lr", options.lr, "Learning rate")->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--mode", options.mode)
      ->check(CLI::IsMember({"compiled", "traced", "eager"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  try {
    run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mnist: %s\n", e.what());
    return 1;
  }
}
