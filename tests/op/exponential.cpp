// SPDX-License-Identifier: Apache-2.0
#include "xla/op/exponential.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::map_each;
using test::numbers;

namespace {

constexpr float f_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float f_inf = std::numeric_limits<float>::infinity();

template <class T>
void check_exp_and_log(double tolerance) {
  const auto x = numbers<T>({7, 13});
  check_equal(exp(x), {7, 13}, map_each<T>(x, [](T v) { return std::exp(v); }), tolerance, 0);
  const auto y = x * x + T(0.001);
  check_equal(log(y), {7, 13}, map_each<T>(y, [](T v) { return std::log(v); }), tolerance, 0.1);
  const auto wide = numbers<T>({1000}, 3) * T(20);
  check_equal(exp(wide), {1000}, map_each<T>(wide, [](T v) { return std::exp(v); }), tolerance, 0);
  const auto big = exp(numbers<T>({1000}, 4) * T(20));
  check_equal(log(big), {1000}, map_each<T>(big, [](T v) { return std::log(v); }), tolerance, 1);
  check_equal(exp(numbers<T>({0, 3})), {0, 3}, {});
  check_equal(exp(numbers<T>({1, 1}) * T(0)), {1, 1}, std::vector<T>{1});
}

}  // namespace

TEST_CASE("exp and log are close to those of the standard library") {
  const xla::eager_mode_guard eager;
  check_exp_and_log<float>(5e-7);  // 4 units in the last place
  check_exp_and_log<double>(1e-15);
}

TEST_CASE("exp and log of special values") {
  const xla::eager_mode_guard eager;
  check_equal(exp(xla::tensor<float>({f_nan, f_inf, -f_inf, 0, -0.f, 89, -104})), {7},
              std::vector<float>{f_nan, f_inf, 0, 1, 1, f_inf, 0});
  check_equal(log(xla::tensor<float>({f_nan, f_inf, -f_inf, 0, -0.f, 1, -1})), {7},
              std::vector<float>{f_nan, f_inf, f_nan, -f_inf, -f_inf, 0, f_nan});
  const double nan = std::nan(""), inf = HUGE_VAL;
  check_equal(exp(xla::tensor<double>({nan, inf, -inf, 0, -0., 710, -746})), {7},
              std::vector<double>{nan, inf, 0, 1, 1, inf, 0});
  check_equal(log(xla::tensor<double>({nan, inf, -inf, 0, -0., 1, -1})), {7},
              std::vector<double>{nan, inf, nan, -inf, -inf, 0, nan});
}

TEMPLATE_TEST_CASE("expm1 and log1p are close to those of the standard library", "", float,
                   double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const double tolerance = 3 * std::numeric_limits<T>::epsilon();
  auto check = [&](const auto& x) {
    check_equal(expm1(x), x.sizes(), map_each<T>(x, [](T v) { return std::expm1(v); }), tolerance,
                std::numeric_limits<T>::min());
    check_equal(log1p(x), x.sizes(), map_each<T>(x, [](T v) { return std::log1p(v); }), tolerance,
                std::numeric_limits<T>::min());
  };
  check(numbers<T>({7, 13}));
  check(numbers<T>({1000}, 1) * T(20));
  check(numbers<T>({1000}, 2) * T(1e-6));
  check(numbers<T>({0, 3}));
  check(xla::tensor(test::special_values<T>()));
  const T denormal = std::numeric_limits<T>::denorm_min();
  check(xla::tensor<T>({denormal, -denormal, T(88.5), T(709.5), T(800), T(-800), T(-1), T(1e20)}));
}

TEST_CASE("exp reaches the largest numbers") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({88.4f, 88.7f, 88.72283f, 88.8f});
  check_equal(exp(x), {4}, map_each<float>(x, [](double v) { return std::exp(v); }), 2e-7);
}

TEST_CASE("exp and log are the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(exp(x), log(x), log(exp(x) + 1), exp(-x * x), expm1(x) * log1p(x));
  };
  check_modes(all, numbers<float>({7, 13}));
  check_modes(all, numbers<double>({17, 33}));
  check_modes(all, xla::tensor(test::special_values<float>()));
}

TEST_CASE("gradients of exp and log") {
  check_gradient([](auto& x) { return exp(x) - log(x * x + 1) * exp(x * 0.5); },
                 numbers<double>({3, 5}));
  check_gradient([](auto& x) { return expm1(x) * log1p(x * x); }, numbers<double>({3, 5}));
}
