// SPDX-License-Identifier: Apache-2.0
// xla::associative_scan in every mode, along every axis, in both directions, with gradients.
#include <tuple>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/xla.hpp"

using test::check_equal;
using test::numbers;

namespace {

constexpr auto added = [](const auto& a, const auto& b) { return a + b; };

/// h = factor h + x.
constexpr auto recurrence = [](const auto& l, const auto& r) {
  return std::tuple(std::get<0>(l) * std::get<0>(r),
                    std::get<0>(r) * std::get<1>(l) + std::get<1>(r));
};

}  // namespace

TEST_CASE("sums so far, along any axis and from either end") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 4, 2});
  check_equal(xla::associative_scan(added, x), cumsum(x, 0), 1e-6f);
  check_equal(xla::associative_scan(added, x, {.axis = 1}), cumsum(x, 1), 1e-6f);
  check_equal(xla::associative_scan(added, x, {.axis = -1, .reverse = true}),
              flip(cumsum(flip(x, {2}), 2), {2}), 1e-6f);
  const auto one = numbers<float>({1, 2});
  check_equal(xla::associative_scan(added, one), one);
}

TEST_CASE("a linear recurrence is the same in every mode, with its gradients") {
  auto f = [](auto& a, auto& x) {
    const auto [factors, h] = xla::associative_scan(recurrence, std::tuple(a, x));
    const auto [left, back] =
        xla::associative_scan(recurrence, std::tuple(a, x), {.axis = 1, .reverse = true});
    auto loss = sum(h * h) + sum(factors * left) + sum(back);
    loss.backward();
    return std::tuple(loss, h, left, back);
  };
  for (const int n : {1, 2, 7}) {
    const auto a = test::parameter(numbers<float>({n, 3}, 1));
    const auto x = test::parameter(numbers<float>({n, 3}, 2));
    test::check_modes(f, a, x);
  }
}

TEST_CASE("a linear recurrence against its steps, and gradients against differences") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<double>({5}, 1), x = numbers<double>({5}, 2);
  const auto h = std::get<1>(xla::associative_scan(recurrence, std::tuple(a, x)));
  double want = 0;
  for (int i = 0; i < 5; ++i) {
    want = want * a.to_vector()[static_cast<std::size_t>(i)] +
           x.to_vector()[static_cast<std::size_t>(i)];
    CHECK(h.to_vector()[static_cast<std::size_t>(i)] == Approx(want));
  }
  test::check_gradient(
      [](auto& t) {
        return std::get<1>(xla::associative_scan(recurrence, std::tuple(t * 0.5, t * t),
                                                 {.reverse = true}));
      },
      numbers<double>({4, 2}));
}

TEST_CASE("no elements, and an axis that is not there, are refused") {
  const xla::eager_mode_guard eager;
  const auto none = xla::zeros<float>({0, 2});
  CHECK_THROWS_WITH(xla::associative_scan(added, none),
                    test::contains("associative_scan: there are no elements: a scan needs"));
  CHECK_THROWS_AS(xla::associative_scan(added, none, {.axis = 2}), xla::shape_error);
  auto compiled = xla::compile([](auto& x) { return xla::associative_scan(added, x); });
  CHECK_THROWS_AS(compiled(none), xla::shape_error);
}
