// SPDX-License-Identifier: Apache-2.0
#include "xla/op/tanh.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;

namespace {

template <class T>
void check_tanh(double tolerance) {
  auto near_std = [&](const auto& x) {
    check_equal(tanh(x), x.sizes(), test::map_each<T>(x, [](T v) { return std::tanh(v); }),
                tolerance, 1e-3);
  };
  near_std(numbers<T>({7, 13}));
  near_std(numbers<T>({1000}, 1) * T(10));
  near_std(numbers<T>({33}, 2) * T(1e-3));
  near_std(numbers<T>({0, 2}));
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  near_std(xla::tensor<T>({nan, inf, -inf, 0, 1, -1, 30, -30, 1e30f}));
}

}  // namespace

TEST_CASE("tanh is close to that of the standard library") {
  const xla::eager_mode_guard eager;
  check_tanh<float>(4e-7);
  check_tanh<double>(1e-15);
}

TEST_CASE("tanh is the same in every mode") {
  auto all = [](auto& x) { return std::tuple(tanh(x), tanh(x * 2) * tanh(x)); };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, xla::tensor(test::special_values<float>()));
}

TEST_CASE("the gradient of tanh") {
  test::check_gradient([](auto& x) { return tanh(x) * tanh(x * 0.5); }, numbers<double>({3, 5}));
}
