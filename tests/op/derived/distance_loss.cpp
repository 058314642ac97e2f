// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/distance_loss.hpp"

#include "data/optim.inc"
#include "support/gradient.hpp"
#include "support/loss.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_loss;
using test::numbers;
namespace reduction = xla::reduction;

TEST_CASE("distances in every reduction are PyTorch's") {
  const auto x = test::parameter({7, 5});
  const auto y = numbers<float>({7, 5}, 1);
  check_loss(
      x, [&](auto& v, auto r) { return mse_loss(v, y, r); }, reference::mse_loss_none,
      reference::mse_loss_mean_sum, reference::mse_loss_grad);
  check_loss(
      x, [&](auto& v, auto r) { return l1_loss(v, y, r); }, reference::l1_loss_none,
      reference::l1_loss_mean_sum, reference::l1_loss_grad);
  check_loss(
      x, [&](auto& v, auto r) { return huber_loss(v, y, 1.5, r); }, reference::huber_loss_none,
      reference::huber_loss_mean_sum, reference::huber_loss_grad);
  check_loss(
      x, [&](auto& v, auto r) { return smooth_l1_loss(v, y, 2.5, r); },
      reference::smooth_l1_loss_none, reference::smooth_l1_loss_mean_sum,
      reference::smooth_l1_loss_grad);
}

TEST_CASE("distances at nothing, at infinity and at NaN") {
  const xla::eager_mode_guard eager;
  const float inf = std::numeric_limits<float>::infinity(), nan = NAN;
  const auto zero = xla::zeros<float>({4});
  const auto far = xla::tensor<float>({0, 1e30f, -inf, nan});
  check_equal(l1_loss(far, zero, reduction::none), {4}, {0, 1e30f, inf, nan});
  check_equal(huber_loss(far, zero, 2, reduction::none), {4}, {0, 2e30f, inf, nan});
  check_equal(smooth_l1_loss(far, zero, 2, reduction::none), {4}, {0, 1e30f, inf, nan});
  check_equal(l1_loss(numbers<float>({0, 3}), numbers<float>({0, 3}), reduction::sum), {},
              std::vector<float>{0});
  auto p = xla::Parameter<float, 1>::like(far);
  p.copy_(xla::tensor<float>({0, 1e30f, -1e30f, 2}));
  huber_loss(p, zero, 2, reduction::sum).backward();
  check_equal(p.grad(), {4}, {0, 2, -2, 2});
}

TEST_CASE("distances of different sizes are refused") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 2}), y = numbers<float>({3, 1});
  CHECK_THROWS_WITH(l1_loss(x, y), test::contains("l1_loss: input (3, 2) and target (3, 1)"));
  CHECK_THROWS_WITH(huber_loss(x, y), test::contains("huber_loss"));
  CHECK_THROWS_WITH(smooth_l1_loss(x, y), test::contains("smooth_l1_loss"));
  CHECK_THROWS_WITH(mse_loss(x, y, reduction::none), test::contains("mse_loss"));
}

TEST_CASE("distances are the same in every mode") {
  auto step = [](auto& x, auto& y, auto& delta) {
    auto loss = l1_loss(x, y) + huber_loss(x, y, delta) + smooth_l1_loss(x, y, delta);
    auto each = huber_loss(x, y, delta, reduction::none);
    (loss + mse_loss(x, y, reduction::sum)).backward();
    return std::tuple(loss, each);
  };
  test::check_modes(step, test::parameter({7, 13}), numbers<float>({7, 13}, 1), xla::Scalar(1.5));
}

TEST_CASE("gradients of distances") {
  const auto x = numbers<double>({4, 3}), y = numbers<double>({4, 3}, 1);
  test::check_gradient([](auto& v, auto& w) { return l1_loss(v, w); }, x, y);
  test::check_gradient([](auto& v, auto& w) { return huber_loss(v, w, 2, reduction::none); }, x, y);
  test::check_gradient([](auto& v, auto& w) { return smooth_l1_loss(v, w, 0.5); }, x, y);
}
