// SPDX-License-Identifier: Apache-2.0
#include "xla/op/root.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::map_each;
using test::numbers;

namespace {

template <class T>
void check_roots(double tolerance) {
  auto near_std = [&](const auto& x) {
    check_equal(sqrt(x), x.sizes(), map_each<T>(x, [](T v) { return std::sqrt(v); }), tolerance, 0);
    check_equal(rsqrt(x), x.sizes(), map_each<T>(x, [](T v) { return 1 / std::sqrt(v); }),
                2 * tolerance, 0);
  };
  near_std(numbers<T>({7, 13}) * numbers<T>({7, 13}));
  near_std(exp(numbers<T>({1000}, 1) * T(20)));
  near_std(numbers<T>({0, 2}));
  near_std(xla::tensor<T>({T(4)}));
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  near_std(xla::tensor<T>({nan, inf, -inf, 0, 1, -1, 4, std::numeric_limits<T>::max()}));
}

}  // namespace

TEST_CASE("square roots are close to those of the standard library") {
  const xla::eager_mode_guard eager;
  check_roots<float>(3e-7);
  check_roots<double>(1e-15);
}

TEST_CASE("square roots are the same in every mode") {
  auto all = [](auto& x) { return std::tuple(sqrt(x), rsqrt(x), sqrt(x * x + 1) * rsqrt(x + 9)); };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, xla::tensor(test::special_values<float>()));
}

TEST_CASE("gradients of square roots") {
  test::check_gradient([](auto& x) { return sqrt(x * x + 1) + x * rsqrt(x + 9); },
                       numbers<double>({3, 5}));
}
