// SPDX-License-Identifier: Apache-2.0
#include "xla/op/pow.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/abs.hpp"

using test::check_equal;
using test::map_each;
using test::map_pairs;
using test::numbers;

namespace {

template <class T>
void check_pairs(const auto& x, const auto& y) {
  check_equal(pow(x, y), test::broadcast(x.sizes(), y.sizes()),
              map_pairs<T>(x, y, [](T a, T b) { return std::pow(a, b); }),
              3 * std::numeric_limits<T>::epsilon(), std::numeric_limits<T>::min());
}

}  // namespace

TEMPLATE_TEST_CASE("pow is close to that of the standard library", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_pairs<T>(abs(numbers<T>({7, 13}, 1)), numbers<T>({7, 13}, 2));
  check_pairs<T>(abs(numbers<T>({7, 1}, 1)) * T(100), numbers<T>({1, 13}, 2) * T(4));
  check_pairs<T>(numbers<T>({31}, 1), xla::cast<T>(numbers<std::int32_t>({31}, 2)));
  check_pairs<T>(numbers<T>({0, 2}), numbers<T>({1, 2}));
  std::vector<T> a, b;
  test::special_pairs(a, b);
  for (T x : {T(-3), T(3), T(2), T(-0.25)})
    for (T y : test::special_values<T>()) {
      a.push_back(x), b.push_back(y);
      a.push_back(y), b.push_back(x);
    }
  check_pairs<T>(xla::tensor(a), xla::tensor(b));
}

TEMPLATE_TEST_CASE("powers of integers wrap around", "", std::int32_t, std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  auto by_hand = [](T x, T y) -> T {
    if (std::is_signed_v<T> && y < 0)
      return x == 1 ? 1 : x != static_cast<T>(-1) ? 0 : y % 2 ? x : 1;
    std::uint64_t result = 1;
    for (T i = 0; i < y; ++i) result *= static_cast<std::uint64_t>(x);
    return static_cast<T>(result);
  };
  const auto x = numbers<T>({7, 13}, 1);
  const auto y = numbers<T>({13}, 2);
  check_equal(pow(x, y), {7, 13}, map_pairs<T>(x, y, by_hand));
  check_equal(pow(x, 2), {7, 13}, map_each<T>(x, [](T v) { return v * v; }));
  check_equal(pow(x, 5), {7, 13}, map_each<T>(x, [&](T v) { return by_hand(v, 5); }));
  check_equal(pow(2, xla::tensor<T>({0, 1, 6})), {3}, std::vector<T>{1, 2, 64});
}

TEST_CASE("a negative power of integers is refused, as in PyTorch") {
  const auto check = [](const auto& x) {
    const auto sentence = test::contains("pow: integers to a negative power are fractions");
    for (bool eager : {true, false}) {
      const xla::eager_mode_guard mode(eager);
      CHECK_THROWS_WITH(pow(x, -1), sentence);
      CHECK_THROWS_AS(pow(x, xla::Scalar(-2)), xla::error);
    }
  };
  check(numbers<std::int32_t>({3}));
  check(numbers<std::int64_t>({2, 3}));
  check(numbers<std::uint8_t>({3}));
}

TEST_CASE("powers that need no pow") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor(test::special_values<float>());
  check_equal(pow(x, 1), x);
  check_equal(pow(x, 2), x * x);
  check_equal(pow(x, 3), x * x * x);
  check_equal(pow(x, 0.5), sqrt(x));
  check_equal(pow(x, -0.5), rsqrt(x));
  check_equal(pow(x, -1), 1 / x);
  check_equal(pow(x, -2), 1 / (x * x));
  check_equal(pow(x, 0), x.sizes(), std::vector<float>(x.to_vector().size(), 1));
  const xla::Scalar two = 2;
  check_equal(pow(numbers<float>({7}), two), {7}, pow(numbers<float>({7}), 2).to_vector(), 4e-7);
}

TEST_CASE("pow is the same in every mode") {
  auto all = [](auto& x, auto& y) {
    return std::tuple(pow(x, y), pow(x, 2) + pow(x, 3), pow(x, 0.5) * pow(x, -1), pow(x, 2.5),
                      pow(1.5, y));
  };
  test::check_modes(all, numbers<float>({7, 13}, 1), numbers<float>({13}, 2));
  test::check_modes(all, numbers<double>({17, 33}, 1), numbers<double>({17, 33}, 2));
  auto whole = [](auto& x, auto& y) { return std::tuple(pow(x, y), pow(x, 4), pow(3, y)); };
  test::check_modes(whole, numbers<std::int64_t>({7, 13}, 1), numbers<std::int64_t>({13}, 2));
  test::check_modes(whole, numbers<std::uint8_t>({7, 13}, 1), numbers<std::uint8_t>({13}, 2));
}

TEST_CASE("gradients of pow") {
  test::check_gradient([](auto& x, auto& y) { return pow(abs(x) + 0.5, y); },
                       numbers<double>({3, 5}, 1), numbers<double>({5}, 2));
  test::check_gradient(
      [](auto& x) {
        const auto positive = x * x + 0.5;
        return pow(x, 2) + pow(x, 3) - pow(x, 4) * 0.1 + pow(positive, 1.5) + pow(2, x) +
               pow(positive, -1) * pow(positive, 0.5);
      },
      numbers<double>({3, 5}));
}

TEST_CASE("gradients of pow at 0 are numbers") {
  const xla::eager_mode_guard eager;
  auto x = xla::Parameter<double, 1>::like(xla::tensor<double>({0, 0, 0, 2}));
  auto y = xla::Parameter<double, 1>::like(x);
  x.copy_(xla::tensor<double>({0, 0, 0, 2}));
  y.copy_(xla::tensor<double>({0, 1, 2, 0}));
  sum(pow(x, y)).backward();
  check_equal(x.grad(), {4}, std::vector<double>{0, 1, 0, 0});
  check_equal(y.grad(), {4}, std::vector<double>{0, 0, 0, std::log(2.)}, 1e-15);
}
