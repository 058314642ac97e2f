// SPDX-License-Identifier: Apache-2.0
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/tanh.hpp"
#include "xla/transform/vector_jacobian.hpp"

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

TEST_CASE("backward from a gradient for each element, in every mode") {
  auto f = [](auto& p, auto& q, auto& v) {
    const auto y = tanh(p) * q;
    y.backward(v);
    return y;
  };
  const auto p = test::parameter(numbers<float>({3, 2}, 1));
  const auto q = test::parameter(numbers<float>({2}, 2));
  const auto v = numbers<float>({3, 2}, 3);
  test::check_modes(f, p, q, v);
  const xla::eager_mode_guard eager;
  auto a = p;
  auto b = q;
  f(a, b, v);
  check_equal(a.grad(), grad(sum(tanh(a) * b * v), a), 1e-7f);
  check_equal(b.grad(), sum(tanh(p.detach()) * v, {0}), 1e-7f);
}

TEST_CASE("from several values at once") {
  auto f = [](auto& p, auto& v, auto& w) {
    const auto values = [&] {
      const auto s = tanh(p);
      return std::tuple(s, s * s);
    };
    backward(values(), std::tuple(v, w));
    const auto [both] = grad(values(), std::tie(p), std::tuple(v, w));
    return std::tuple(both, grad(tanh(p), p, v));
  };
  const auto p = test::parameter(numbers<float>({5}, 1));
  const auto v = numbers<float>({5}, 2), w = numbers<float>({5}, 3);
  test::check_modes(f, p, v, w);
  const xla::eager_mode_guard eager;
  auto a = p;
  const auto [both, one] = f(a, v, w);
  const auto s = tanh(p.detach()), slope = 1 - s * s;
  check_equal(both, (v + s * w * 2) * slope, 1e-6f);
  check_equal(one, v * slope, 1e-6f);
  check_equal(a.grad(), both);
}

TEST_CASE("the gradient of one element does not affect others, not even as NaN") {
  const xla::eager_mode_guard eager;
  auto p = test::parameter(xla::tensor<float>({0, 1, 4}));
  (1 / p).backward(xla::tensor<float>({0, 1, -2}));  // the first is infinite
  CHECK(p.grad().to_vector()[1] == -1);
  CHECK(p.grad().to_vector()[2] == 0.125f);
  auto half = test::parameter(xla::cast<xla::bfloat16>(xla::tensor<float>({1, 2})));
  (half * half).backward(xla::cast<xla::bfloat16>(xla::tensor<float>({3, 5})));
  CHECK(xla::cast<float>(half.grad()).to_vector() == std::vector<float>{6, 20});
}

TEST_CASE("a gradient of another shape is refused") {
  const xla::eager_mode_guard eager;
  auto p = test::parameter(numbers<float>({2, 3}));
  const auto why = test::contains("backward: a gradient of shape (3, 2) for a value of shape (2, 3)");
  CHECK_THROWS_WITH((p * 2).backward(xla::ones<float>({3, 2})), why);
  CHECK_THROWS_WITH(grad(p * 2, p, xla::ones<float>({1, 3})), test::contains("a gradient of shape"));
  auto compiled = xla::compile([](auto& p, auto& v) { (p * 2).backward(v); });
  const auto v = numbers<float>({3, 2});
  CHECK_THROWS_WITH(compiled(p, v), test::contains("backward: axis 0 of argument 0 is 2, axis 0"));
  CHECK_FALSE(p.grad().defined());
}
