// SPDX-License-Identifier: Apache-2.0
// What worker.js calls: a convolutional network that learns digits. Its training step and its
// reading were compiled by the C++ compiler, as on any other platform.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <xla/xla.hpp>

#include "strokes.hpp"

#ifdef __wasm__
#define EXPORT(name) __attribute__((export_name(#name))) name
#else
#define EXPORT(name) name
#endif

namespace {

namespace nn = xla::nn;

struct ConvNet {
  nn::Conv2d<3, 1, 1> conv1{1, 32}, conv2{32, 64};  // kernels of 3, stride 1, padding 1
  nn::Linear fc1{3136, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 4> images) const {  // (batch, 1, 28, 28)
    auto strokes = xla::max_pool2d(xla::relu(conv1(images)), 2);   // (batch, 32, 14, 14)
    auto parts = xla::max_pool2d(xla::relu(conv2(strokes)), 2);    // (batch, 64, 7, 7)
    return fc2(xla::relu(fc1(xla::flatten<1>(parts))));
  }
  XLA_MODULE(conv1, conv2, fc1, fc2)
};

constexpr auto step_fn = [](auto& model, auto& images, auto& digits, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(images), digits);
  loss.backward();
  optimizer.step();
  return loss;
};
constexpr auto read_fn = [](auto& model, auto& images) { return xla::softmax(model(images), 1); };

constexpr std::int64_t batch = 16;
constexpr std::uint32_t learned = 1, held_out = 2;  // seeds of what is drawn at random
constexpr float most_varied = 1, pen = 2.6f;

struct Trainer {
  ConvNet model;
  xla::optim::AdamW<ConvNet> optimizer{model, {.lr = 1e-3}};
  std::uint64_t steps = 0;
};
std::optional<Trainer> trainer;

struct Example {
  web::Drawing drawing;
  std::int64_t digit;
};
std::vector<Example> drawn;      // by the visitor
std::vector<web::Point> points;  // what the page writes: x, y; a negative x begins a stroke
std::array<float, 10> likely{};  // what it reads
web::Picture seen{};             // likewise

auto& step() {
  static auto compiled = xla::compile(step_fn, {.name = "convnet_step"});
  return compiled;
}
auto& read() {
  static auto compiled = xla::compile(read_fn, {.name = "convnet_read"});
  return compiled;
}

/// A digit of the page's own.
std::pair<web::Picture, std::int64_t> make_digit(std::uint64_t number, std::uint32_t seed) {
  web::Random random{number, seed};
  const auto digit = random.below(10);
  const auto& ways = web::ways_of_writing(digit);
  const auto drawing = web::vary(ways[random.below(ways.size())], random, most_varied);
  return {web::paint(drawing, random.between(2, 3.4f)), static_cast<std::int64_t>(digit)};
}

using Batch = std::pair<xla::Tensor<float, 4>, xla::Tensor<std::int64_t, 1>>;
Batch to_tensors(const std::vector<web::Picture>& pictures,
                 const std::vector<std::int64_t>& digits) {
  const auto count = static_cast<std::int64_t>(pictures.size());
  return {xla::from_blob(pictures[0].data(), {count, 1, web::side, web::side}),
          xla::from_blob(digits.data(), {count})};
}

/// Digits of the page, and up to a quarter of the visitor's, each with another variation.
Batch make_batch(std::uint64_t number) {
  std::vector<web::Picture> pictures;
  std::vector<std::int64_t> digits;
  const auto own = std::min(batch / 4, 2 * static_cast<std::int64_t>(drawn.size()));
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::uint64_t sample = number * batch + static_cast<std::uint64_t>(i);
    if (i < own) {
      web::Random random{sample, learned};
      const auto& [drawing, digit] = drawn[random.below(drawn.size())];
      pictures.push_back(web::paint(web::vary(drawing, random, most_varied / 2), pen));
      digits.push_back(digit);
    } else {
      const auto [picture, digit] = make_digit(sample, learned);
      pictures.push_back(picture);
      digits.push_back(digit);
    }
  }
  return to_tensors(pictures, digits);
}

web::Drawing drawing_of_points() {
  web::Drawing drawing;
  for (const auto& p : points)
    if (p.x < 0) drawing.emplace_back();
    else if (!drawing.empty()) drawing.back().push_back(p);
  std::erase_if(drawing, [](const auto& stroke) { return stroke.empty(); });
  return web::to_unit(std::move(drawing));
}

void read_picture() {
  const auto [images, unused] = to_tensors({seen}, {0});
  const auto shares = read()(trainer->model, images).to_vector();
  std::copy(shares.begin(), shares.end(), likely.begin());
}

}  // namespace

extern "C" {

/// Forgets what was learned; the visitor's digits stay.
void EXPORT(restart)(std::uint32_t seed) {
  xla::eager_mode(true);
  xla::manual_seed(seed);
  trainer.emplace();
}

/// One step of training; the loss of its batch.
float EXPORT(train)() {
  auto& t = *trainer;
  auto [images, digits] = make_batch(t.steps++);
  return step()(t.model, images, digits, t.optimizer).item();
}

/// The part of 100 digits, which are never trained on, that the network reads.
float EXPORT(accuracy)() {
  std::vector<web::Picture> pictures;
  std::vector<std::int64_t> digits;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto [picture, digit] = make_digit(i, held_out);
    pictures.push_back(picture);
    digits.push_back(digit);
  }
  const auto [images, unused] = to_tensors(pictures, digits);
  const auto shares = read()(trainer->model, images).to_vector();
  int right = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto* const first = &shares[10 * i];
    right += std::max_element(first, first + 10) - first == digits[i];
  }
  return static_cast<float>(right) / 100;
}

/// Where the page writes a drawing of so many points.
web::Point* EXPORT(drawing)(std::uint32_t count) {
  points.resize(count);
  return points.data();
}

/// Reads that drawing; where the likelihoods of the ten digits are.
const float* EXPORT(guess)() {
  seen = web::paint(drawing_of_points(), pen);
  read_picture();
  return likely.data();
}
/// Where the picture is that the network has read last.
const float* EXPORT(picture)() { return seen.data(); }

/// Learns from that drawing, too, from now on; how many there are.
std::uint32_t EXPORT(learn)(std::int32_t digit) {
  drawn.push_back({drawing_of_points(), digit});
  return static_cast<std::uint32_t>(drawn.size());
}

/// What the page shows of its own digits: reads number i of them, likewise.
const float* EXPORT(sample)(std::uint32_t i) {
  seen = make_digit(i, held_out).first;
  read_picture();
  return likely.data();
}
std::int32_t EXPORT(sample_digit)(std::uint32_t i) {
  return static_cast<std::int32_t>(make_digit(i, held_out).second);
}

}  // extern "C"
