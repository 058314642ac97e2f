// SPDX-License-Identifier: Apache-2.0
#include "xla/op/erf.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/erfinv.hpp"

using test::check_equal;
using test::map_each;
using test::numbers;

namespace {

template <class T>
void check_all(const auto& x) {
  const double tolerance = 8 * std::numeric_limits<T>::epsilon();
  const double floor = std::numeric_limits<T>::min();
  check_equal(erf(x), x.sizes(), map_each<T>(x, [](T v) { return std::erf(v); }), tolerance, floor);
  check_equal(erfc(x), x.sizes(), map_each<T>(x, [](T v) { return std::erfc(v); }), tolerance,
              floor);
  auto probability = [](T v) {
    return std::erfc(static_cast<long double>(v) / -std::numbers::sqrt2_v<long double>) / 2;
  };
  check_equal(ndtr(x), x.sizes(), map_each<T>(x, probability), tolerance, floor);
}

}  // namespace

TEMPLATE_TEST_CASE("erf, erfc and ndtr are close to those of the standard library", "", float,
                   double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_all<T>(numbers<T>({7, 13}));
  check_all<T>(numbers<T>({1000}, 1) * T(2.2));
  check_all<T>(numbers<T>({33}, 2) * T(1e-5));
  check_all<T>(numbers<T>({0, 2}));
  check_all<T>(xla::tensor(test::special_values<T>()));
  check_all<T>(xla::tensor<T>({1, -1, 6, -6, 30, -30, 45, -45, 1e30f, -1e30f}));
}

TEST_CASE("erf, erfc and ndtr are the same in every mode") {
  auto all = [](auto& x) { return std::tuple(erf(x), erfc(x * 2) * erf(x), ndtr(x)); };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, xla::tensor(test::special_values<float>()));
}

TEST_CASE("gradients of erf, erfc and ndtr") {
  test::check_gradient([](auto& x) { return erf(x) * 2 - erfc(x * 0.5) * x + ndtr(x); },
                       numbers<double>({3, 5}));
}

TEST_CASE("erfinv is erf's inverse, and infinite at its ends") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<double>({0, -0.0, 1e-300, 0.5, -0.7, 0.71, 0.999, -1, 1, 1.5});
  const auto y = erfinv(x).to_vector();
  CHECK(std::signbit(y[1]));
  CHECK(y[7] == -std::numeric_limits<double>::infinity());
  CHECK(y[8] == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(y[9]));
  for (const std::size_t i : {2, 3, 4, 5, 6})
    CHECK(std::erf(y[i]) == Approx(x.to_vector()[i]).epsilon(1e-15));
}

TEST_CASE("erfinv is the same in every mode, with its gradient") {
  test::check_modes([](auto& x) { return erfinv(x); }, numbers<float>({7, 13}) * 0.3f);
  test::check_modes([](auto& x) { return erfinv(x * 0.3) * x; }, numbers<double>({17, 33}));
  test::check_modes([](auto& x) { return erfinv(x); }, xla::tensor(test::special_values<float>()));
  test::check_gradient([](auto& x) { return erfinv(x * 0.2); }, numbers<double>({3, 5}));
}
