// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/elementwise.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/indexing.hpp"

using test::check_equal;
using test::map_each;
using test::numbers;

TEMPLATE_TEST_CASE("square, and what is a number", "", float, double, std::int32_t, std::int64_t,
                   std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto x = numbers<T>({7, 13});
  check_equal(square(x), {7, 13}, map_each<T>(x, [](T v) { return v * v; }));
  const auto s = xla::tensor(test::special_values<T>());
  check_equal(isnan(s), s.sizes(), map_each<bool>(s, [](T v) { return std::isnan(double(v)); }));
  check_equal(isinf(s), s.sizes(), map_each<bool>(s, [](T v) { return std::isinf(double(v)); }));
  check_equal(isfinite(s), s.sizes(),
              map_each<bool>(s, [](T v) { return std::isfinite(double(v)); }));
  check_equal(isfinite(numbers<T>({0, 3})), {0, 3}, {});
}

TEST_CASE("reciprocal of special values") {
  const xla::eager_mode_guard eager;
  const auto s = xla::tensor(test::special_values<float>());
  check_equal(reciprocal(s), s.sizes(), map_each<float>(s, [](float v) { return 1 / v; }));
}

TEST_CASE("lerp goes from start to end and reaches both") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<float>({7, 1}, 1);
  const auto b = numbers<float>({1, 13}, 2);
  for (float w : {0.f, 0.25f, 0.5f, 0.75f, 1.f, 1.5f, -1.f}) {
    const auto want = test::map_pairs<float>(
        a, b, [&](float x, float y) { return double(x) + double(w) * (double(y) - double(x)); });
    check_equal(lerp(a, b, w), {7, 13}, want, 1e-6);
    check_equal(lerp(a, b, xla::full({7, 13}, w)), {7, 13}, want, 1e-6);
  }
  check_equal(lerp(a, b, 0), a + b * 0);
  check_equal(lerp(a, b, 1), a * 0 + b);
}

TEST_CASE("composed functions refuse shapes in their own name") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<float>({2, 3}), b = numbers<float>({2, 4});
  using test::contains;
  const auto no = contains("(2, 3) and (2, 4) do not broadcast");
  CHECK_THROWS_WITH(lerp(a, b, 0.5), contains("lerp: sizes of") && no);
  CHECK_THROWS_WITH(lerp(a, a, b), contains("lerp: sizes of") && no);
  CHECK_THROWS_WITH(addcmul(a, a, b), contains("addcmul: sizes of") && no);
  CHECK_THROWS_WITH(addcdiv(a, b, b), contains("addcdiv: sizes of") && no);
  CHECK_THROWS_WITH(masked_fill(a, b > 0, 1), contains("masked_fill: sizes of") && no);
  CHECK_THROWS_WITH(logical_xor(a > 0, b > 0), contains("logical_xor: sizes of") && no);
  auto f = xla::compile([](auto& x, auto& y) { return lerp(x, y, 0.5); });
  CHECK_THROWS_WITH(f(a, b), contains("lerp: "));
}

TEST_CASE("addcmul and addcdiv add a multiple of a product or quotient, broadcast") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 1, 1});
  const auto a = numbers<float>({13}, 1);
  const auto b = numbers<float>({3, 1}, 2);
  check_equal(addcmul(x, a, b, 0.5), x + a * b * 0.5);
  check_equal(addcmul(x, a, b), x + a * b);
  check_equal(addcdiv(x, a, b, -2), x + a / b * -2);
  check_equal(addcdiv(x, a, b), x + a / b);
  const auto i = numbers<std::int64_t>({5}), k = numbers<std::int64_t>({5}, 1);
  check_equal(addcmul(i, i, k, 3), i + i * k * 3);
  CHECK_THROWS_AS(addcmul(x, a, numbers<float>({12})), xla::shape_error);
}

TEST_CASE("these are the same in every mode") {
  auto all = [](auto& x, auto& y) {
    return std::tuple(square(x), reciprocal(x), isnan(x), isinf(y) || isfinite(x), lerp(x, y, 0.25),
                      lerp(x, y, x), addcmul(y, x, x, 0.5), addcdiv(x, y, x));
  };
  test::check_modes(all, numbers<float>({7, 13}, 1), numbers<float>({13}, 2));
  test::check_modes(all, numbers<double>({17, 33}, 1), numbers<double>({17, 33}, 2));
  test::check_modes(all, xla::tensor(test::special_values<float>()), numbers<float>({12}));
}

TEST_CASE("gradients of square, reciprocal and lerp") {
  test::check_gradient(
      [](auto& x, auto& y, auto& w) {
        return square(x) + reciprocal(square(y) + 1) + lerp(x, y, w) * lerp(y, x, 0.75) +
               addcmul(x, y, w, 0.5) * addcdiv(y, w, square(x) + 1);
      },
      numbers<double>({3, 5}, 1), numbers<double>({5}, 2), numbers<double>({3, 1}, 3));
}
