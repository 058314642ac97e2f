// SPDX-License-Identifier: Apache-2.0
#include "xla/op/sigmoid.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::map_each;
using test::numbers;

namespace {

template <class T>
void check_all(const auto& x) {
  const double tolerance = 4 * std::numeric_limits<T>::epsilon();
  const double floor =
      std::numeric_limits<T>::min() / tolerance;  // below the normal numbers 0 will do
  using wide = long double;
  check_equal(sigmoid(x), x.sizes(), map_each<T>(x, [](wide v) { return 1 / (1 + std::exp(-v)); }),
              tolerance, floor);
  auto softened = [](wide v) { return std::max(v, wide(0)) + std::log1p(std::exp(-std::abs(v))); };
  check_equal(softplus(x), x.sizes(),
              map_each<T>(x, [&](wide v) { return v > 20 ? v : softened(v); }), tolerance, floor);
  check_equal(softplus(x, 2, 6), x.sizes(),
              map_each<T>(x, [&](wide v) { return 2 * v > 6 ? v : softened(2 * v) / 2; }),
              tolerance, floor);
  check_equal(logsigmoid(x), x.sizes(), map_each<T>(x, [&](wide v) { return -softened(-v); }),
              tolerance, floor);
}

}  // namespace

TEMPLATE_TEST_CASE("sigmoid and softplus are close to their definitions", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_all<T>(numbers<T>({7, 13}));
  check_all<T>(numbers<T>({1000}, 1) * T(20));
  check_all<T>(numbers<T>({0, 2}));
  check_all<T>(numbers<T>({1, 1}) * T(0));
}

TEST_CASE("sigmoid and softplus of special values") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const auto x = xla::tensor<float>({nan, inf, -inf, 0, -0.f, 1e30f, -1e30f});
  check_equal(sigmoid(x), {7}, std::vector<float>{nan, 1, 0, 0.5f, 0.5f, 1, 0});
  const float log2 = std::log(2.f);
  check_equal(softplus(x), {7}, std::vector<float>{nan, inf, 0, log2, log2, 1e30f, 0}, 1e-6);
  check_equal(logsigmoid(x), {7}, std::vector<float>{nan, 0, -inf, -log2, -log2, 0, -1e30f}, 1e-6);
}

TEST_CASE("sigmoid and softplus are the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(sigmoid(x), softplus(x), softplus(x, 0.5, 3), logsigmoid(x) * sigmoid(-x));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
}

TEST_CASE("gradients of sigmoid and softplus") {
  test::check_gradient(
      [](auto& x) {
        return sigmoid(x) * x + softplus(x) + softplus(x, 3, 4) * 0.5 - logsigmoid(x * 2);
      },
      numbers<double>({3, 5}));
}

TEST_CASE("far from 0 the gradients of sigmoid and softplus are numbers") {
  const xla::eager_mode_guard eager;
  const auto far = xla::tensor<float>({-1e30f, -1000, 1000, 1e30f});
  auto x = xla::Parameter<float, 1>::like(far);
  x.copy_(far);
  sum(sigmoid(x)).backward();
  check_equal(x.grad(), {4}, std::vector<float>{0, 0, 0, 0});
  x.zero_grad();
  sum(softplus(x) * 2 + logsigmoid(x)).backward();
  check_equal(x.grad(), {4}, std::vector<float>{1, 1, 2, 2});
}
