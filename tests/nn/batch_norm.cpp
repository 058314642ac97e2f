// SPDX-License-Identifier: Apache-2.0
#include "data/optim.inc"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/stored.hpp"
#include "xla/nn/normalization.hpp"

using test::check_equal;
using test::check_stored;
using test::numbers;
namespace nn = xla::nn;

namespace {

nn::BatchNorm1d make_layer() {
  nn::BatchNorm1d layer(4);
  layer.weight.copy_(numbers<float>({4}, 1));
  layer.bias.copy_(numbers<float>({4}, 2));
  return layer;
}

}  // namespace

TEST_CASE("BatchNorm1d trains and evaluates as PyTorch's does") {
  const xla::eager_mode_guard eager;
  auto layer = make_layer();
  layer(numbers<float>({6, 4}, 3));
  auto x = test::parameter({5, 4}, 4);
  const auto y = layer(x);
  check_stored(y, reference::batch_norm);
  test::weighted_sum(y).backward();
  check_stored(x.grad(), reference::batch_norm_grad_x, 2e-5);
  check_stored(layer.weight.grad(), reference::batch_norm_grad_w, 2e-5);
  check_stored(layer.bias.grad(), reference::batch_norm_grad_b);
  check_stored(layer.running_mean, reference::batch_norm_running_mean);
  check_stored(layer.running_var, reference::batch_norm_running_var);
  CHECK(layer.num_batches_tracked.item() == 2);
  layer.eval();
  check_stored(layer(numbers<float>({5, 4}, 5)), reference::batch_norm_eval);
  CHECK(layer.num_batches_tracked.item() == 2);
  check_stored(layer.running_mean, reference::batch_norm_running_mean);
  CHECK(layer(numbers<float>({1, 4})).sizes() == test::sizes_t{1, 4});
}

TEST_CASE("running statistics are written through a const model, the same in every mode") {
  const xla::eager_mode_guard eager;
  const auto layer = make_layer();
  auto step = [](const auto& model, const auto& x) {
    const auto y = model(x);
    test::weighted_sum(y).backward();
    return y;
  };
  test::check_modes(step, layer, numbers<float>({6, 4}));
  auto compiled = xla::compile(step);
  compiled(layer, numbers<float>({6, 4}));
  compiled(layer, numbers<float>({3, 4}));
  CHECK(layer.num_batches_tracked.item() == 2);
  auto other = make_layer();
  step(other, numbers<float>({6, 4}));
  step(other, numbers<float>({3, 4}));
  check_equal(layer.running_var, other.running_var);
  check_equal(layer.running_mean, other.running_mean);

  other.eval();
  auto predict = xla::compile(other);
  check_equal(predict(numbers<float>({1, 4})), other(numbers<float>({1, 4})));
  CHECK(other.num_batches_tracked.item() == 2);
}

TEST_CASE("batches that have no variance are refused before anything is written") {
  const xla::eager_mode_guard eager;
  nn::BatchNorm1d layer(4);
  auto step = xla::compile([](auto& model, auto& x) { return model(x); });
  for (std::int64_t rows : {0, 1}) {
    const auto x = numbers<float>({rows, 4});
    const auto sentence = rows == 0 ? "the batch is empty" : "one row has no variance";
    CHECK_THROWS_WITH(step(layer, x), test::contains(sentence));
    CHECK_THROWS_WITH(layer(x), test::contains(sentence));
  }
  CHECK_THROWS_WITH(layer(numbers<float>({3, 5})), test::contains("(3, 5)"));
  CHECK(layer.running_mean.to_vector() == std::vector<float>(4, 0));
  CHECK(layer.running_var.to_vector() == std::vector<float>(4, 1));
}
