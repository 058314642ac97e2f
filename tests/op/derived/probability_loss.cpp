// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/probability_loss.hpp"

#include "data/optim.inc"
#include "support/gradient.hpp"
#include "support/loss.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/sigmoid.hpp"

using test::check_equal;
using test::check_loss;
using test::numbers;
namespace reduction = xla::reduction;

namespace {

template <int R>
xla::Parameter<float, R> as_parameter(const xla::Tensor<float, R>& x) {
  auto p = xla::Parameter<float, R>::like(x);
  p.copy_(x);
  return p;
}

/// The gradient of the sum of losses f(x).
template <class F>
std::vector<float> slopes(const std::vector<float>& x, F f) {
  auto p = as_parameter(xla::tensor(x));
  sum(f(p)).backward();
  return p.grad().to_vector();
}

}  // namespace

TEST_CASE("losses of probabilities in every reduction are PyTorch's") {
  const xla::eager_mode_guard eager;
  const auto x = test::parameter({7, 5});
  const auto y = numbers<float>({7, 5}, 1), q = sigmoid(y);
  const auto weight = xla::tensor<float>({0.5, 1, 2, 3, 0.25});
  check_loss(
      as_parameter(sigmoid(x.detach())),
      [&](auto& v, auto r) { return binary_cross_entropy(v, q, r); }, reference::bce_none,
      reference::bce_mean_sum, reference::bce_grad);
  check_loss(
      x, [&](auto& v, auto r) { return binary_cross_entropy_with_logits(v, q, r); },
      reference::bce_logits_none, reference::bce_logits_mean_sum, reference::bce_logits_grad);
  check_loss(
      x, [&](auto& v, auto r) { return binary_cross_entropy_with_logits(v, q, weight, r); },
      reference::bce_weighted_none, reference::bce_weighted_mean_sum, reference::bce_weighted_grad);
  const auto logs = as_parameter(log_softmax(x.detach())), soft = as_parameter(softmax(y));
  check_loss(
      logs, [&](auto& v, auto r) { return kl_div(v, soft, r); }, reference::kl_div_none,
      reference::kl_div_mean_sum, reference::kl_div_grad);
  check_loss(
      logs, [&](auto& v, auto r) { return kl_div(v, log_softmax(y), r, true); },
      reference::kl_div_log_none, reference::kl_div_log_mean_sum, reference::kl_div_log_grad);
  test::check_stored(kl_div(logs, soft, reduction::batchmean), reference::kl_div_batchmean);
}

TEST_CASE("extreme logits and probabilities give numbers, and gradients that are numbers") {
  const xla::eager_mode_guard eager;
  const std::vector<float> x{-1e30f, -80, -20, 0, 20, 80, 1e30f};
  const auto logits = xla::tensor(x), ones = xla::ones<float>({7}), zeros = xla::zeros<float>({7});
  const float small = 2.0611536e-9f, half = 0.6931472f;
  check_equal(binary_cross_entropy_with_logits(logits, ones, reduction::none), {7},
              {1e30f, 80, 20, half, small, 1.8048514e-35f, 0}, 1e-6, 1e-38);
  check_equal(binary_cross_entropy_with_logits(logits, zeros, reduction::none), {7},
              {0, 1.8048514e-35f, small, half, 20, 80, 1e30f}, 1e-6, 1e-38);
  const auto up = slopes(x, [&](auto& p) { return binary_cross_entropy_with_logits(p, zeros); });
  const auto down = slopes(x, [&](auto& p) { return binary_cross_entropy_with_logits(p, ones); });
  const std::vector<float> want{0, 0, small, 0.5, 1, 1, 1};
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(up[i] * 7 == Approx(want[i]).margin(1e-30));
    CHECK(down[i] * 7 == Approx(-want[6 - i]).margin(1e-30));
  }
  const auto sure = xla::tensor<float>({0, 1, 0, 1}), truth = xla::tensor<float>({0, 1, 1, 0});
  check_equal(binary_cross_entropy(sure, truth, reduction::none), {4}, {0, 0, 100, 100}, 1e-9);
  for (float g : slopes({0, 1, 0, 1}, [&](auto& p) { return binary_cross_entropy(p, truth); }))
    CHECK(std::isfinite(g));
  for (float g : slopes({0, 1, 0, 0.5}, [](auto& p) { return kl_div(log(p + 1), p); }))
    CHECK(std::isfinite(g));
}

TEST_CASE("probabilities of different sizes are refused") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 2}), y = numbers<float>({3, 1});
  CHECK_THROWS_WITH(binary_cross_entropy(x, y),
                    test::contains("binary_cross_entropy: input (3, 2)"));
  CHECK_THROWS_WITH(binary_cross_entropy_with_logits(x, y), test::contains("with_logits"));
  CHECK_THROWS_WITH(kl_div(x, y), test::contains("kl_div: input (3, 2) and target (3, 1)"));
}

TEST_CASE("losses of probabilities are the same in every mode") {
  auto step = [](auto& x, auto& y) {
    const auto q = sigmoid(y);
    auto loss = binary_cross_entropy_with_logits(x, q) +
                binary_cross_entropy_with_logits(x, q, y, reduction::sum) +
                binary_cross_entropy(sigmoid(x), q) + kl_div(x, q) +
                kl_div(x, y, reduction::batchmean, true);
    loss.backward();
    return loss;
  };
  test::check_modes(step, test::parameter({7, 13}), numbers<float>({7, 13}, 1));
}

TEST_CASE("gradients of losses of probabilities") {
  const auto x = numbers<double>({4, 3}), y = numbers<double>({4, 3}, 1);
  test::check_gradient(
      [](auto& v, auto& w) { return binary_cross_entropy_with_logits(v, sigmoid(w)); }, x, y);
  test::check_gradient(
      [](auto& v, auto& w) { return binary_cross_entropy_with_logits(v, sigmoid(w), w * w); }, x,
      y);
  test::check_gradient(
      [](auto& v, auto& w) { return binary_cross_entropy(sigmoid(v), sigmoid(w)); }, x, y);
  test::check_gradient([](auto& v, auto& w) { return kl_div(v, sigmoid(w), reduction::none); }, x,
                       y);
  test::check_gradient([](auto& v, auto& w) { return kl_div(v, w, reduction::sum, true); }, x, y);
}
