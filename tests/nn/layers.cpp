// SPDX-License-Identifier: Apache-2.0
#include "support/modes.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/embedding.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/loss.hpp"
#include "xla/nn/normalization.hpp"

using test::check_equal;
using test::numbers;
namespace nn = xla::nn;

TEST_CASE("nn::Linear starts as PyTorch's does: uniform within 1 / sqrt(in)") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  nn::Linear layer(100, 50);
  for (const auto& v : {layer.weight.to_vector(), layer.bias.to_vector()}) {
    double square = 0;
    for (float w : v) {
      CHECK_FALSE(std::abs(w) > 0.1f);
      square += double(w) * double(w) / static_cast<double>(v.size());
    }
    CHECK(square == Approx(0.01 / 3).epsilon(0.25));
  }
  xla::manual_seed(1);
  nn::Linear again(100, 50);
  check_equal(again.weight, {50, 100}, layer.weight.to_vector());
  again.reset_parameters();
  CHECK(again.weight.to_vector() != layer.weight.to_vector());
}

TEST_CASE("nn::Linear is x weightᵀ + bias, for any number of leading axes") {
  const xla::eager_mode_guard eager;
  nn::Linear layer(5, 3);
  const auto x = numbers<float>({2, 4, 5});
  check_equal(layer(x), {2, 4, 3},
              (matmul(x, transpose(layer.weight)) + layer.bias).to_vector(), 1e-6);
  CHECK_THROWS_WITH(layer(numbers<float>({2, 6})),
                    test::contains("(2, 6)") && test::contains("(3, 5)"));
}

TEST_CASE("activations and losses as modules") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3});
  const auto target = xla::tensor<std::int64_t>({0, 1, 2, 0});
  check_equal(nn::ReLU{}(x), relu(x));
  check_equal(nn::Tanh{}(x), tanh(x));
  check_equal(nn::Softmax{}(x), softmax(x));
  check_equal(nn::CrossEntropyLoss{}(x, target), cross_entropy(x, target));
  check_equal(nn::MSELoss{}(x, x * 2), mse_loss(x, x * 2));
  nn::Sequential model{nn::Linear{3, 5}, nn::Tanh{}, nn::Linear{5, 2}};
  check_equal(model(x), std::get<2>(model.layers)(tanh(std::get<0>(model.layers)(x))));
}

TEST_CASE("layers refuse what has no meaning") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH((nn::Embedding{0, 4}), "nn::Embedding: count is 0, and has to be at least 1");
  CHECK_THROWS_AS((nn::Embedding{4, -1}), xla::error);
  CHECK_THROWS_AS((nn::Linear{-1, 4}), xla::error);
  CHECK_THROWS_AS((nn::LayerNorm{8, -1}), xla::error);
  CHECK_THROWS_AS((nn::RMSNorm{8, NAN}), xla::error);
  CHECK_THROWS_AS((nn::BatchNorm1d{8, 1e-5, 2}), xla::error);
  CHECK_THROWS_AS(layer_norm(numbers<float>({4, 3}), -1), xla::error);
}
