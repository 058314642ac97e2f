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
