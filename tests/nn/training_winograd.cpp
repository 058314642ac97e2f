// SPDX-License-Identifier: Apache-2.0
// Thirteen layers of 3 x 3 kernels learn as well by Winograd's algorithm as by direct sums.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/steps.hpp"
#include "xla/kernel/convolution/algorithms.hpp"
#include "xla/xla.hpp"

namespace {

using xla::Tensor;
namespace nn = xla::nn;

constexpr std::int64_t batch = 12, size = 8, channels = 16, classes = 4;

struct Layer {
  nn::Conv2d<3, 1, 1> conv{channels, channels};
  nn::BatchNorm2d norm{channels};
  constexpr auto operator()(const Tensor<float, 4>& x) const { return xla::relu(norm(conv(x))); }
  XLA_MODULE(conv, norm)
};

struct Net {
  nn::Conv2d<3, 1, 1> first{3, channels};
  nn::ModuleArray<Layer, 12> layers;
  nn::Linear last{channels, classes};
  constexpr auto operator()(const Tensor<float, 4>& images) const {
    const auto seen = layers(xla::relu(first(images)));
    return last(xla::mean(seen, {2, 3}));
  }
  XLA_MODULE(first, layers, last)
};

using Batch = std::pair<Tensor<float, 4>, Tensor<std::int64_t, 1>>;

/// Stripes under noise; which way they run is the label.
Batch stripes() {
  auto images = xla::randn<float>({batch, 3, size, size}).to_vector();
  std::vector<std::int64_t> labels;
  for (std::int64_t n = 0; n < batch; ++n) {
    labels.push_back(n % classes);
    for (std::int64_t i = 0; i < 3 * size * size; ++i) {
      const std::int64_t y = i / size % size, x = i % size;
      const std::int64_t along[] = {x, y, x + y, x + size - y};
      images[static_cast<std::size_t>(n * 3 * size * size + i)] +=
          along[n % classes] / 2 % 2 == 0 ? 0.75f : -0.75f;
    }
  }
  return {xla::from_blob(images.data(), {batch, 3, size, size}),
          xla::from_blob(labels.data(), {batch})};
}

/// The loss of every step.
std::vector<float> trained() {
  xla::manual_seed(7);
  std::vector<Batch> ring;
  for (int i = 0; i < 4; ++i) ring.push_back(stripes());
  Net net;
  xla::optim::SGD optimizer{net, {.lr = 0.02, .momentum = 0.9}};
  auto step = xla::compile(test::class_step);
  std::vector<float> losses;
  for (std::size_t i = 0; i < 100; ++i)
    losses.push_back(step(net, ring[i % 4].first, ring[i % 4].second, optimizer).item());
  return losses;
}

}  // namespace

TEST_CASE("A net of thirteen 3 x 3 layers trains to the same loss by Winograd's algorithm") {
  using namespace xla::kernel;
  const conv_sizes sizes{batch,    size,   size,   channels, size,   size,
                         channels, {3, 3}, {1, 1}, {1, 1},   {1, 1}, 1};
  REQUIRE(algorithm_of<float>(sizes) == conv_algorithm::winograd_4);
  const auto fast = trained();
  xla::set_winograd(false);
  const auto plain = trained();
  xla::set_winograd(true);
  const auto end_of = [](const std::vector<float>& losses) {
    return std::accumulate(losses.end() - 8, losses.end(), 0.0) / 8;
  };
  CHECK(fast != plain);
  CHECK(std::abs(fast[0] - plain[0]) < 1e-4);
  CHECK(plain[0] > 1);
  CHECK(end_of(fast) < 0.05);
  CHECK(end_of(plain) < 0.05);
  CHECK(std::abs(end_of(fast) - end_of(plain)) < 0.02);
}
