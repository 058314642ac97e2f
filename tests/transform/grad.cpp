// SPDX-License-Identifier: Apache-2.0
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/tanh.hpp"

using test::check_equal;
using test::numbers;

TEST_CASE("grad gives gradients of chosen tensors and collects nothing") {
  const xla::eager_mode_guard eager;
  auto p = test::parameter(numbers<double>({4}));
  auto x = numbers<double>({4}, 1);
  x.requires_grad_();
  const auto loss = sum(p * x * x);
  const auto [dp, dx] = grad(loss, std::tie(p, x));
  check_equal(dp, x * x);
  check_equal(dx, p * x * 2, 1e-15);
  CHECK_FALSE(p.grad().defined());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("grad reaches values in the middle, and gives 0 where nothing depends") {
  const xla::eager_mode_guard eager;
  auto p = test::parameter(numbers<float>({4}));
  auto other = test::parameter(numbers<float>({3}));
  const auto h = p * 3;
  const auto [dh, none] = grad(sum(h * h), std::tie(h, other));
  check_equal(dh, h * 2);
  CHECK(none.to_vector() == std::vector<float>(3, 0.f));
  CHECK_THROWS_WITH(grad(sum(h * 2), numbers<float>({4})), test::contains("requires_grad_()"));
}

TEST_CASE("gradients of gradients") {
  const xla::eager_mode_guard eager;
  auto x = xla::tensor<double>({0.5, -2, 3});
  x.requires_grad_();
  const auto first = grad(sum(x * x * x), x, {.create_graph = true});
  const auto second = grad(sum(first), x, {.create_graph = true});
  const auto third = grad(sum(second), x);
  check_equal(first, x * x * 3, 1e-15);
  check_equal(second, x * 6, 1e-15);
  CHECK(third.to_vector() == std::vector<double>{6, 6, 6});
}

TEST_CASE("second gradients against finite differences of the first") {
  test::check_gradient(
      [](auto& x) {
        const auto y = sum(tanh(x) * exp(x * 0.5));
        return grad(y, xla::Tensor<double, 1>(x), {.create_graph = true});
      },
      numbers<double>({5}));
}

TEST_CASE("grad is the same in every mode") {
  auto f = [](auto& p, auto& data) {
    auto x = data.detach();
    x.requires_grad_();
    const auto score = sum(tanh(matmul(x, p)));
    const auto slope = grad(score, x, {.create_graph = true});
    const auto penalty = sum(slope * slope);
    (score + penalty * 0.1f).backward();
    return std::tuple(score, slope, penalty);
  };
  test::check_modes(f, test::parameter(numbers<float>({3, 2})), numbers<float>({5, 3}, 1));
}
