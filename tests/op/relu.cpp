// SPDX-License-Identifier: Apache-2.0
#include "xla/op/relu.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;

TEMPLATE_TEST_CASE("relu", "", float, double, std::int32_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  auto check = [](const auto& x) {
    check_equal(relu(x), x.sizes(),
                test::map_each<T>(x, [](T v) { return v < 0 ? T(0) : v; }));
  };
  check(numbers<T>({7, 13}));
  check(numbers<T>({1000}));
  check(numbers<T>({1, 1}));
  check(numbers<T>({0, 4}));
  check(xla::tensor(test::special_values<T>()));
}

TEST_CASE("relu is the same in every mode") {
  auto all = [](auto& x) { return std::tuple(relu(x), relu(x - 1) * relu(1 - x)); };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, xla::tensor(test::special_values<float>()));
}

TEST_CASE("the gradient of relu, 0 at 0") {
  test::check_gradient([](auto& x) { return relu(x) * relu(x + 1); }, numbers<double>({3, 5}));
  const xla::eager_mode_guard eager;
  auto p = xla::Parameter<float, 1>::like(xla::zeros<float>({3}));
  p.copy_(xla::tensor<float>({-1, 0, 2}));
  sum(relu(p)).backward();
  check_equal(p.grad(), {3}, std::vector<float>{0, 0, 1});
}
