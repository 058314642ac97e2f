// SPDX-License-Identifier: Apache-2.0
#include "xla/op/trigonometric.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::map_each;
using test::numbers;

namespace {

template <class T>
void check_all(const auto& x) {
  const double tolerance = 2.5 * std::numeric_limits<T>::epsilon();
  const double floor = std::numeric_limits<T>::min();
  check_equal(sin(x), x.sizes(), map_each<T>(x, [](T v) { return std::sin(v); }), tolerance, floor);
  check_equal(cos(x), x.sizes(), map_each<T>(x, [](T v) { return std::cos(v); }), tolerance, floor);
  check_equal(tan(x), x.sizes(), map_each<T>(x, [](T v) { return std::tan(v); }), 3 * tolerance,
              floor);
}

}  // namespace

TEMPLATE_TEST_CASE("sin, cos and tan are close to those of the standard library", "", float,
                   double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_all<T>(numbers<T>({7, 13}));
  check_all<T>(numbers<T>({1000}, 1) * T(100));
  check_all<T>(numbers<T>({1000}, 2) * T(1e7));
  check_all<T>(numbers<T>({33}, 3) * T(1e-6));
  check_all<T>(numbers<T>({0, 2}));
  check_all<T>(xla::tensor(test::special_values<T>()));
  const T denormal = std::numeric_limits<T>::denorm_min();
  check_all<T>(xla::tensor<T>({denormal, -denormal, T(1e30), T(-1e30), T(3.14159265358979),
                               T(1.5707963267948966), T(-6.283185307179586)}));
}

TEST_CASE("far angles leave their neighbours' bits alone") {
  const xla::eager_mode_guard eager;
  const auto near = numbers<double>({16});
  auto values = near.to_vector();
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 1e300;
  const auto mixed = sin(xla::tensor(values)).to_vector(), plain = sin(near).to_vector();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % 3) CHECK(mixed[i] == plain[i]);
}

TEST_CASE("sin and cos are the same in every mode") {
  auto all = [](auto& x) { return std::tuple(sin(x), cos(x * 2) * sin(x), tan(x)); };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, xla::tensor(test::special_values<double>()));
}

TEST_CASE("gradients of sin, cos and tan") {
  test::check_gradient([](auto& x) { return sin(x) * cos(x * 0.5) + tan(x * 0.25); },
                       numbers<double>({3, 5}));
}

TEMPLATE_TEST_CASE("atan2 is the angle of a point, C's at zeros and infinities", "", float,
                   double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto angle = [](T y, T x) { return std::atan2(y, x); };
  std::vector<T> y, x;
  test::special_pairs(y, x);
  check_equal(atan2(xla::tensor(y), xla::tensor(x)), {std::int64_t(y.size())},
              test::map_pairs<T>(xla::tensor(y), xla::tensor(x), angle));
  const auto a = numbers<T>({7, 1});
  const auto b = numbers<T>({33}, 1);
  check_equal(atan2(a, b), {7, 33}, test::map_pairs<T>(a, b, angle));
  check_equal(atan2(a, numbers<T>({0})), {7, 0}, {});
  auto all = [](auto& v, auto& w) { return std::tuple(atan2(v, w) * 2, sum(atan2(w, v), {0})); };
  test::check_modes(all, numbers<T>({7, 33}, 2), b);
  test::check_modes(all, xla::tensor(y), xla::tensor(x));
}

TEST_CASE("the gradients of atan2") {
  test::check_gradient([](auto& y, auto& x) { return atan2(y, x) * y; }, numbers<double>({3, 5}),
                       numbers<double>({5}, 1));
}
