// SPDX-License-Identifier: Apache-2.0
#include "xla/op/rounding.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::map_each;
using test::numbers;

namespace {

template <class T>
void check_all(const auto& x) {
  check_equal(floor(x), x.sizes(), map_each<T>(x, [](T v) { return std::floor(v); }));
  check_equal(ceil(x), x.sizes(), map_each<T>(x, [](T v) { return std::ceil(v); }));
  check_equal(round(x), x.sizes(), map_each<T>(x, [](T v) { return std::nearbyint(v); }));
  check_equal(trunc(x), x.sizes(), map_each<T>(x, [](T v) { return std::trunc(v); }));
  check_equal(sign(x), x.sizes(), map_each<T>(x, [](T v) { return (v > 0) - (v < 0); }));
}

}  // namespace

TEMPLATE_TEST_CASE("rounding gives the bits of the standard library", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_all<T>(numbers<T>({7, 13}));
  check_all<T>(numbers<T>({1000}, 1) * T(100));
  check_all<T>(numbers<T>({0, 2}));
  check_all<T>(numbers<T>({1, 1}));
  check_all<T>(xla::tensor(test::special_values<T>()));
  const T big = std::ldexp(T(1), std::numeric_limits<T>::digits - 1);
  check_all<T>(xla::tensor<T>({0.5, 1.5, 2.5, -0.5, -1.5, -2.5, -0.25, 0.75, big - T(0.5), -big,
                               big + 1, std::nextafter(T(0.5), T(0)), 4 * big}));
}

TEMPLATE_TEST_CASE("integers are whole already", "", std::int32_t, std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto x = numbers<T>({7, 13});
  check_equal(floor(x), x);
  check_equal(ceil(x), x);
  check_equal(round(x), x);
  check_equal(trunc(x), x);
  const auto special = xla::tensor(test::special_values<T>());
  check_equal(sign(special), special.sizes(),
              map_each<T>(special, [](T v) { return (v > 0) - (v < 0); }));
}

TEST_CASE("rounding is the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(floor(x), ceil(x * 2), round(x) + trunc(x), sign(x) * ceil(x));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, xla::tensor(test::special_values<float>()));
  test::check_modes(all, numbers<std::int32_t>({7, 13}));
}

TEST_CASE("the gradient of rounding is 0") {
  test::check_gradient([](auto& x) { return floor(x) + ceil(x) * round(x) + trunc(x) * sign(x); },
                       numbers<double>({3, 5}));
}

TEST_CASE("the gradient of rounding is 0 next to infinite ones, and in every mode") {
  auto step = [](auto& w) {
    sum(floor(w) * std::numeric_limits<double>::infinity() + w).backward();
    return w.grad();
  };
  auto w = xla::Parameter<double, 1>::like(numbers<double>({5}));
  w.copy_(numbers<double>({5}));
  test::check_modes(step, w);
  const xla::eager_mode_guard eager;
  check_equal(step(w), {5}, std::vector<double>(5, 1));
}
