// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/loss.hpp"

#include "support/modes.hpp"
#include "support/stored.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/run/state/metrics.hpp"

using test::check_equal;
using test::numbers;
namespace nn = xla::nn;
namespace reduction = xla::reduction;

TEST_CASE("losses as modules are the functions with their options") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3}), y = numbers<float>({4, 3}, 1);
  const auto p = sigmoid(x), q = sigmoid(y), logs = log_softmax(x);
  const auto target = xla::tensor<std::int64_t>({0, 1, -100, 2}),
             all = where(target < 0, 0, target);
  check_equal(nn::CrossEntropyLoss{}(x, all), cross_entropy(x, all));
  check_equal(nn::CrossEntropyLoss{}(x, target), cross_entropy(x, target, {}), 1e-6);
  check_equal(nn::CrossEntropyLoss{}(x, all, reduction::none),
              cross_entropy(x, all, reduction::none));
  check_equal(nn::SmoothCrossEntropyLoss{{.label_smoothing = 0.1}}(x, target),
              cross_entropy(x, target, {.label_smoothing = 0.1}));
  check_equal(nn::SmoothCrossEntropyLoss{{.ignore_index = 0}}(x, all, reduction::sum),
              cross_entropy(x, all, {.ignore_index = 0}, reduction::sum));
  const auto weight = xla::tensor<float>({0.5, 2, 1});
  check_equal(nn::WeightedCrossEntropyLoss{weight, {.label_smoothing = 0.1}}(x, target),
              cross_entropy(x, target, weight, {.label_smoothing = 0.1}));
  check_equal(nn::CrossEntropyLoss{}(x, softmax(y)), cross_entropy(x, softmax(y)));
  check_equal(nn::NLLLoss{}(logs, target), nll_loss(logs, target, -100));
  check_equal(nn::NLLLoss{.ignore_index = 0}(logs, all), nll_loss(logs, all, 0));
  check_equal(nn::MSELoss{}(x, y, reduction::sum), mse_loss(x, y, reduction::sum));
  check_equal(nn::L1Loss{}(x, y), l1_loss(x, y));
  check_equal(nn::HuberLoss{2}(x, y, reduction::none), huber_loss(x, y, 2, reduction::none));
  check_equal(nn::SmoothL1Loss{0.5}(x, y), smooth_l1_loss(x, y, 0.5));
  check_equal(nn::BCELoss{}(p, q), binary_cross_entropy(p, q));
  check_equal(nn::BCEWithLogitsLoss{}(x, q), binary_cross_entropy_with_logits(x, q));
  check_equal(nn::KLDivLoss{}(logs, q, reduction::batchmean),
              kl_div(logs, q, reduction::batchmean));
  check_equal(nn::KLDivLoss{true}(logs, y), kl_div(logs, y, reduction::mean, true));
}

TEST_CASE("losses refuse options that have no meaning") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3});
  const auto target = xla::tensor<std::int64_t>({0, 1, 0, 2});
  CHECK_THROWS_AS(nn::SmoothCrossEntropyLoss{{.label_smoothing = 1.5}}, xla::error);
  CHECK_THROWS_AS(cross_entropy(x, target, {.label_smoothing = -1}), xla::error);
  CHECK_THROWS_AS(huber_loss(x, x, 0), xla::error);
  CHECK_THROWS_AS(smooth_l1_loss(x, x, NAN), xla::error);
}

TEST_CASE("losses as modules are the same in every mode; other options are no other graph") {
  auto step = [](auto& smooth, auto& weighted, auto& huber, auto& x, auto& y, auto& target) {
    auto loss = smooth(x, target) + weighted(x, target) + huber(x, y) +
                nn::BCEWithLogitsLoss{}(x, sigmoid(y)) +
                nn::KLDivLoss{}(log_softmax(x), softmax(y), reduction::batchmean);
    loss.backward();
    return loss;
  };
  const auto target = xla::tensor<std::int64_t>({0, 4, -100, 2, 2, 1, 0});
  const nn::SmoothCrossEntropyLoss smooth{{.label_smoothing = 0.1}};
  const nn::WeightedCrossEntropyLoss weighted{xla::tensor<float>({0.5, 2, 1, 3, 0.25})};
  test::check_modes(step, smooth, weighted, nn::HuberLoss{2}, test::parameter({7, 5}),
                    numbers<float>({7, 5}, 1), target);

  const xla::eager_mode_guard eager;
  auto compiled =
      xla::compile([](auto& loss_fn, const auto& x, const auto& t) { return loss_fn(x, t); });
  nn::SmoothCrossEntropyLoss loss_fn{{.label_smoothing = 0.1}};
  const auto x = numbers<float>({7, 5});
  const auto all = where(target < 0, 0, target);
  compiled(loss_fn, x, target);
  const auto graphs = xla::counter_value("UncachedCompile");
  loss_fn.label_smoothing = 0.5;
  loss_fn.ignore_index = 0;
  check_equal(compiled(loss_fn, x, all),
              cross_entropy(x, all, {.ignore_index = 0, .label_smoothing = 0.5}));
  CHECK(xla::counter_value("UncachedCompile") == graphs);
}
