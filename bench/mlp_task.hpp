// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <xla/xla.hpp>

#include "numbers.hpp"
#include "step_fn.hpp"

// The task that every contestant trains; the same as in peers/mlp_task.py.
namespace bench {

inline constexpr std::int64_t batch_size = 64, inputs = 784, hidden = 128, classes = 10;
inline constexpr std::int64_t batch_count = 16;

struct Mlp {
  xla::nn::Linear fc1{inputs, hidden}, fc2{hidden, classes};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

/// Uniform in ±1/sqrt(in).
inline void set_weights(Mlp& model) {
  std::uint32_t stream = 0;
  const auto fill = [&](auto& parameter, auto empty, std::int64_t fan_in) {
    const float bound = static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)));
    std::vector<float> values(static_cast<std::size_t>(std::int64_t(parameter.numel())));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = (2 * uniform(stream, static_cast<std::int64_t>(i)) - 1) * bound;
    ++stream;
    parameter.copy_(empty(values.data()));
  };
  const auto matrix = [](std::int64_t out, std::int64_t in) {
    return [=](const float* p) { return xla::from_blob(p, {out, in}); };
  };
  const auto vector = [](std::int64_t n) {
    return [=](const float* p) { return xla::from_blob(p, {n}); };
  };
  fill(model.fc1.weight, matrix(hidden, inputs), inputs);
  fill(model.fc1.bias, vector(hidden), inputs);
  fill(model.fc2.weight, matrix(classes, hidden), hidden);
  fill(model.fc2.bias, vector(classes), hidden);
}

using batch = std::pair<xla::Tensor<float, 2>, xla::Tensor<std::int64_t, 1>>;

/// A ring of (images, labels): noise, with every tenth pixel brighter where the label says.
inline std::vector<batch> make_batches() {
  std::vector<batch> ring;
  std::vector<float> images(batch_size * inputs);
  std::array<std::int64_t, batch_size> labels;
  for (std::int64_t b = 0; b < batch_count; ++b) {
    for (std::int64_t j = 0; j < batch_size; ++j) {
      const std::int64_t sample = b * batch_size + j;
      const std::int64_t label = hashed(4, sample) % classes;
      labels[static_cast<std::size_t>(j)] = label;
      for (std::int64_t p = 0; p < inputs; ++p)
        images[static_cast<std::size_t>(j * inputs + p)] =
            uniform(5, sample * inputs + p) - 0.5f + (p % classes == label ? 0.02f : 0.f);
    }
    ring.emplace_back(xla::from_blob(images.data(), {batch_size, inputs}),
                      xla::from_blob(labels.data(), {batch_size}));
  }
  return ring;
}

}  // namespace bench
