// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <xla/xla.hpp>

#include "numbers.hpp"

// What networks of images train on; the same as in peers/images_task.py.
namespace bench {

/// Parameter number n from stream n: kernels and matrices within ±sqrt(6 / fan in), biases 0,
/// scales 1.
template <class Model>
void set_image_weights(Model& model) {
  std::uint32_t stream = 0;
  std::vector<float> values;
  xla::named_parameters(model, [&]<class P>(const std::string& name, P& p) {
    xla::Size sizes[P::rank];
    for (int i = 0; i < P::rank; ++i) sizes[i] = p.size(i);
    values.assign(static_cast<std::size_t>(std::int64_t(p.numel())),
                  name.ends_with(".bias") ? 0.0f : 1.0f);
    if constexpr (P::rank > 1) {
      const double fan_in = double(values.size()) / double(std::int64_t(p.size(0)));
      const float bound = static_cast<float>(std::sqrt(6 / fan_in));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = (2 * uniform(stream, static_cast<std::int64_t>(i)) - 1) * bound;
    }
    p.copy_(xla::from_blob(values.data(), sizes));
    ++stream;
  });
}

struct image_sizes {
  std::int64_t batch, channels, size, classes;
};
using image_batch = std::pair<xla::Tensor<float, 4>, xla::Tensor<std::int64_t, 1>>;

/// `count` batches of noise, in which every classes-th pixel is brighter, from the label's on.
inline std::vector<image_batch> make_images(std::int64_t count, const image_sizes& s) {
  constexpr std::uint32_t label_stream = 1000, pixel_stream = 1001;
  const std::int64_t pixels = s.channels * s.size * s.size;
  std::vector<image_batch> ring;
  std::vector<float> images(static_cast<std::size_t>(s.batch * pixels));
  std::vector<std::int64_t> labels(static_cast<std::size_t>(s.batch));
  for (std::int64_t b = 0; b < count; ++b) {
    for (std::int64_t j = 0; j < s.batch; ++j) {
      const std::int64_t sample = b * s.batch + j, label = hashed(label_stream, sample) % s.classes;
      labels[static_cast<std::size_t>(j)] = label;
      for (std::int64_t p = 0; p < pixels; ++p)
        images[static_cast<std::size_t>(j * pixels + p)] =
            uniform(pixel_stream, sample * pixels + p) - 0.5f +
            (p % s.classes == label ? 0.5f : 0.f);
    }
    ring.emplace_back(xla::from_blob(images.data(), {s.batch, s.channels, s.size, s.size}),
                      xla::from_blob(labels.data(), {s.batch}));
  }
  return ring;
}

/// The contract's step function, for a network of images.
inline constexpr auto image_step = [](auto& model, auto& images, auto& labels, auto& loss_fn,
                                      auto& optimizer) {
  optimizer.zero_grad();
  auto loss = loss_fn(model(images), labels);
  loss.backward();
  optimizer.step();
  return loss;
};

/// SGD with momentum on a network that a struct in peers/images_task.py describes in the same way.
template <class Net, std::int64_t Batch, std::int64_t Channels, std::int64_t Size,
          std::int64_t Classes, int Count, int Warm>
struct image_training {
  using Model = Net;
  static constexpr auto step = image_step;
  static constexpr int warm = Warm;
  static void set_weights(Model& model) { set_image_weights(model); }
  static auto optimizer(Model& model) {
    return xla::optim::SGD{model, {.lr = 0.001, .momentum = 0.9}};
  }
  static auto batches() { return make_images(Count, {Batch, Channels, Size, Classes}); }
};

}  // namespace bench
