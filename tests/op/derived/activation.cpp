// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/activation.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::map_each;
using test::numbers;
using wide = long double;

namespace {

wide normal(wide v) { return std::erfc(-v * std::sqrt(wide(0.5))) / 2; }
wide logistic(wide v) { return 1 / (1 + std::exp(-v)); }
wide by_tanh(wide v) {
  return v * logistic(std::sqrt(8 / std::acos(wide(-1))) * (v + wide(0.044715) * v * v * v));
}

template <class T>
void check_all(const auto& x) {
  const double tolerance = 8 * std::numeric_limits<T>::epsilon();
  auto near = [&](const auto& got, auto f) {
    check_equal(got, x.sizes(), map_each<T>(x, f), tolerance, 1e-3);
  };
  near(gelu(x), [](wide v) { return v * normal(v); });
  near(gelu(x, xla::approximate_tanh), by_tanh);
  near(silu(x), [](wide v) { return v * logistic(v); });
  near(leaky_relu(x), [](wide v) { return v > 0 ? v : v * wide(0.01); });
  near(leaky_relu(x, 0.2), [](wide v) { return v > 0 ? v : v * wide(0.2); });
  near(elu(x), [](wide v) { return v > 0 ? v : std::expm1(v); });
  near(elu(x, 2), [](wide v) { return v > 0 ? v : 2 * std::expm1(v); });
  near(hardtanh(x), [](wide v) { return std::min(std::max(v, wide(-1)), wide(1)); });
  near(hardtanh(x, -2, 3), [](wide v) { return std::min(std::max(v, wide(-2)), wide(3)); });
  const auto six = [](wide v) { return std::min(std::max(v, wide(0)), wide(6)); };
  near(relu6(x), six);
  near(hardsigmoid(x), [&](wide v) { return six(v + 3) / 6; });
  near(hardswish(x), [&](wide v) { return v * six(v + 3) / 6; });
}

}  // namespace

TEMPLATE_TEST_CASE("activations are close to their definitions", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_all<T>(numbers<T>({7, 13}));
  check_all<T>(numbers<T>({1000}, 1) * T(10));
  check_all<T>(numbers<T>({0, 2}));
  check_all<T>(xla::tensor<T>({0, -0.0, 1000, -1000, 1e30f, -1e30f}));
}

TEST_CASE("activations of NaN and infinities, as PyTorch has them") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const auto x = xla::tensor<float>({nan, inf, -inf});
  check_equal(gelu(x), {3}, std::vector<float>{nan, inf, nan});
  check_equal(silu(x), {3}, std::vector<float>{nan, inf, nan});
  check_equal(leaky_relu(x), {3}, std::vector<float>{nan, inf, -inf});
  check_equal(elu(x), {3}, std::vector<float>{nan, inf, -1});
  check_equal(hardtanh(x), {3}, std::vector<float>{nan, 1, -1});
}

TEST_CASE("activations are the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(gelu(x), gelu(x, xla::approximate_tanh), silu(x) * leaky_relu(x), elu(x, 0.5),
                      hardtanh(x) + relu6(x * 3), hardsigmoid(x) - hardswish(x));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
}

TEST_CASE("gradients of activations") {
  test::check_gradient(
      [](auto& x) { return gelu(x) + gelu(x, xla::approximate_tanh) * 2 - silu(x) * x; },
      numbers<double>({3, 5}));
  test::check_gradient(
      [](auto& x) { return leaky_relu(x) + elu(x, 1.5) * x + hardtanh(x, -2, 1) + relu6(x * 3); },
      numbers<double>({3, 5}));
  test::check_gradient([](auto& x) { return hardsigmoid(x) * hardswish(x * 2); },
                       numbers<double>({3, 5}));
}

TEMPLATE_TEST_CASE("far from 0 the gradients of activations are numbers", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const T huge = std::numeric_limits<T>::max() / 4;
  const auto far = xla::tensor<T>({-huge, -1e4f, -40, 40, 1e4f, huge});
  auto x = xla::Parameter<T, 1>::like(far);
  x.copy_(far);
  auto check = [&](const auto& y, std::vector<T> want) {
    x.zero_grad();
    sum(y).backward();
    check_equal(x.grad(), {6}, want, 1e-6);
  };
  const std::vector<T> smooth{0, 0, 0, 1, 1, 1};
  check(gelu(x), smooth);
  check(gelu(x, xla::approximate_tanh), smooth);
  check(silu(x), smooth);
  check(elu(x), smooth);
  check(leaky_relu(x, 0.5), {0.5, 0.5, 0.5, 1, 1, 1});
  check(hardtanh(x), {0, 0, 0, 0, 0, 0});
  check(relu6(x), {0, 0, 0, 0, 0, 0});
  check(hardsigmoid(x), {0, 0, 0, 0, 0, 0});
  check(hardswish(x), smooth);
}

TEST_CASE("gradients at the corners are PyTorch's") {
  const xla::eager_mode_guard eager;
  const auto corners = xla::tensor<double>({-1, 0, 1});
  auto x = xla::Parameter<double, 1>::like(corners);
  x.copy_(corners);
  sum(hardtanh(x)).backward();
  check_equal(x.grad(), {3}, std::vector<double>{0, 1, 0});
  x.zero_grad();
  sum(leaky_relu(x, 0.25)).backward();
  check_equal(x.grad(), {3}, std::vector<double>{0.25, 0.25, 1});
  x.zero_grad();
  sum(elu(x, 3)).backward();
  check_equal(x.grad(), {3}, std::vector<double>{3 * std::exp(-1.), 3, 1}, 1e-15);
}
