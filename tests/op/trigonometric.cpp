// SPDX-License-Identifier: Apache-2.0
#include "xla/op/inverse_trigonometric.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/trigonometric.hpp"

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

TEST_CASE("inverse trigonometric and hyperbolic functions at special points") {
  const xla::eager_mode_guard eager;
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto check = [](auto f, auto exact, const xla::Tensor<double, 1>& x) {
    check_equal(f(x), x.sizes(), map_each<double>(x, exact), 1e-15, 0);
  };
  const auto unit = xla::tensor<double>({0, -0.0, 1, -1, 0.5, 1e-300, -1.5, 2, std::nan("")});
  const auto all = xla::tensor<double>({0, -0.0, 1, -1, 1e-300, 1e5, -1e200, 9999, inf, -inf});
  check([](auto x) { return xla::asin(x); }, [](double x) { return std::asin(x); }, unit);
  check([](auto x) { return xla::acos(x); }, [](double x) { return std::acos(x); }, unit);
  check([](auto x) { return xla::atanh(x); }, [](double x) { return std::atanh(x); }, unit);
  check([](auto x) { return xla::atan(x); }, [](double x) { return std::atan(x); }, all);
  check([](auto x) { return xla::asinh(x); }, [](double x) { return std::asinh(x); }, all);
  check([](auto x) { return xla::acosh(x); }, [](double x) { return std::acosh(x); }, all);
}

TEST_CASE("inverse functions are the same in every mode, with their gradients") {
  auto all = [](auto& x) {
    return std::tuple(xla::asin(x), xla::acos(x), xla::atan(x), xla::asinh(x),
                      xla::acosh(x * x + 1), xla::atanh(x));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, xla::tensor(test::special_values<double>()));
  test::check_gradient(
      [](auto& x) {
        const auto s = x * 0.2;
        return xla::asin(s) * xla::acos(s) + xla::atan(x) + xla::asinh(x) + xla::atanh(s) +
               xla::acosh(x * x + 1.5);
      },
      numbers<double>({3, 5}));
}
