// SPDX-License-Identifier: Apache-2.0
#include "xla/op/arithmetic.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/threads.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::map_each;
using test::map_pairs;
using test::numbers;

namespace {

template <class T>
T wrap(std::int64_t x) {
  return static_cast<T>(static_cast<std::uint64_t>(x));
}
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) return wrap<T>(std::int64_t(std::uint64_t(a) + std::uint64_t(b)));
  else return a + b;
}
template <class T>
T minus(T a, T b) {
  if constexpr (std::is_integral_v<T>) return wrap<T>(std::int64_t(std::uint64_t(a) - std::uint64_t(b)));
  else return a - b;
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) return wrap<T>(std::int64_t(std::uint64_t(a) * std::uint64_t(b)));
  else return a * b;
}
/// The quotient, of integers as fractions.
template <class T>
using over_type = std::conditional_t<std::is_floating_point_v<T>, T, float>;
template <class T>
over_type<T> over(T a, T b) {
  return static_cast<over_type<T>>(a) / static_cast<over_type<T>>(b);
}

template <class T, int A, int B>
void check_all(const xla::Tensor<T, A>& a, const xla::Tensor<T, B>& b) {
  const auto sizes = test::broadcast(a.sizes(), b.sizes());
  check_equal(a + b, sizes, map_pairs<T>(a, b, plus<T>));
  check_equal(a - b, sizes, map_pairs<T>(a, b, minus<T>));
  check_equal(a * b, sizes, map_pairs<T>(a, b, times<T>));
  check_equal(a / b, sizes, map_pairs<over_type<T>>(a, b, over<T>));
  check_equal(-a, a.sizes(), map_each<T>(a, [](T x) {
                if constexpr (std::is_floating_point_v<T>) return -x;
                else return minus(T(0), x);
              }));
}

}  // namespace

TEMPLATE_TEST_CASE("arithmetic is that of the element type", "", float, double, std::int32_t,
                   std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto m = numbers<T>({7, 13}, 1);
  check_all(m, numbers<T>({7, 13}, 2));
  check_all(numbers<T>({1, 13}, 5), numbers<T>({7, 1}, 6));
  std::vector<T> a, b;
  test::special_pairs(a, b);
  check_all(xla::tensor(a), xla::tensor(b));
}

TEST_CASE("arithmetic broadcasts as NumPy does") {
  const xla::eager_mode_guard eager;
  const auto m = numbers<float>({7, 13}, 1);
  check_all(m, numbers<float>({13}, 3));
  check_all(m, numbers<float>({7, 1}, 4));
  check_all(m, numbers<float>({2, 3, 1, 13}, 7));
  check_all(numbers<float>({1, 1}), numbers<float>({1, 1}, 8));
  check_all(numbers<float>({0, 3}), numbers<float>({3}));
  check_all(numbers<float>({1000}), numbers<float>({1}, 9));
  check_all(numbers<float>({17, 33}), xla::tensor(3.f));
  check_all(xla::tensor(5.f), xla::tensor(3.f));
}

TEST_CASE("many short rows with the same row, on any number of threads") {
  const xla::eager_mode_guard eager;
  for (int n : {1, 3}) {
    const test::restore_threads some(n);
    check_all(numbers<float>({601, 7}, 10), numbers<float>({7}, 11));
    check_all(numbers<double>({127}, 12), numbers<double>({1201, 127}, 13));
    check_all(numbers<std::int64_t>({2, 4503, 16}, 14), numbers<std::int64_t>({1, 16}, 15));
    check_all(numbers<float>({3, 601, 7}, 16), numbers<float>({3, 1, 7}, 17));
  }
}

TEST_CASE("a number is on either side") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 13});
  check_equal(x + 2, x.sizes(), map_each<float>(x, [](float v) { return v + 2; }));
  check_equal(2 - x, x.sizes(), map_each<float>(x, [](float v) { return 2 - v; }));
  check_equal(x * 0.1, x.sizes(), map_each<float>(x, [](float v) { return v * 0.1f; }));
  check_equal(1 / x, x.sizes(), map_each<float>(x, [](float v) { return 1 / v; }));
  check_equal(x / x.size(0), x.sizes(), map_each<float>(x, [](float v) { return v / 7; }));
  const auto i = numbers<std::int64_t>({5});
  check_equal(7 - i, {5}, map_each<std::int64_t>(i, [](std::int64_t v) { return 7 - v; }));
}

TEST_CASE("integers and bool divide to fractions, as in PyTorch") {
  const xla::eager_mode_guard eager;
  const auto i = xla::tensor<std::int64_t>({-7, 7, -8, 1});
  const auto right = xla::tensor<std::int64_t>({1, 1, 1, 0}) == 1;
  const auto pixels = xla::tensor<std::uint8_t>({0, 51, 255});
  const float inf = std::numeric_limits<float>::infinity();
  check_equal(i / 2, {4}, std::vector<float>{-3.5f, 3.5f, -4, 0.5f});
  check_equal(2 / i, {4}, std::vector<float>{2 / -7.f, 2 / 7.f, -0.25f, 2});
  check_equal(i / 0.5, {4}, std::vector<float>{-14, 14, -16, 2});
  check_equal(i / i.size(0), {4}, std::vector<float>{-1.75f, 1.75f, -2, 0.25f});
  check_equal(i / 0, {4}, std::vector<float>{-inf, inf, -inf, inf});
  check_equal(pixels / 255, {3}, std::vector<float>{0, 0.2f, 1});
  check_equal(sum(right) / right.size(0), {}, std::vector<float>{0.75f});
  check_equal(right / 2, {4}, std::vector<float>{0.5f, 0.5f, 0.5f, 0});
  check_equal(right / right, {4}, std::vector<float>{1, 1, 1, std::nanf("")});
  CHECK(i.size(0) / 3 == 1);
  CHECK(i.size(0) / i.size(0) == 1);
}

TEST_CASE("a quotient of two element types has that of the fractions") {
  const xla::eager_mode_guard eager;
  const auto i = xla::tensor<std::int64_t>({1, -7});
  const auto narrow = xla::tensor<std::int32_t>({4, 2});
  check_equal(i / narrow, {2}, std::vector<float>{0.25f, -3.5f});
  check_equal((i > 0) / narrow, {2}, std::vector<float>{0.25f, 0});
  check_equal(i / xla::tensor<float>({3, 3}), {2}, std::vector<float>{1 / 3.f, -7 / 3.f});
  check_equal(i / xla::tensor<double>({3, 3}), {2}, std::vector<double>{1 / 3., -7 / 3.});
  check_equal(xla::tensor<double>({3, 3}) / narrow, {2}, std::vector<double>{0.75, 1.5});
  const auto x = xla::cast<xla::bfloat16>(xla::tensor<float>({4, 4}));
  check_equal(xla::cast<float>(i / x), {2}, std::vector<float>{0.25f, -1.75f});
}

TEST_CASE("quotients of integers are the same in every mode, with the divisor's gradient") {
  auto all = [](auto& i, auto& narrow, auto& pixels, auto& x) {
    return std::tuple(i / i, i / narrow, narrow / 3, 1 / i, pixels / 255, (i > 0) / narrow,
                      i / x.size(0), sum(i == i) / i.numel(), i / x, narrow / (x * x + 1));
  };
  check_modes(all, numbers<std::int64_t>({7, 13}, 1), numbers<std::int32_t>({13}, 2),
              numbers<std::uint8_t>({17, 33}, 3), numbers<float>({7, 13}, 4));
  check_modes(all, numbers<std::int64_t>({0, 3}, 1), numbers<std::int32_t>({3}, 2),
              numbers<std::uint8_t>({2, 1}, 3), numbers<double>({3}, 4));
  check_gradient([](auto& x) { return xla::arange(4) / (x * x + 2); }, numbers<double>({3, 4}));
}

TEST_CASE("arithmetic: sizes that do not broadcast are refused with both shapes") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH(numbers<float>({7, 13}) + numbers<float>({7}),
                    test::contains("add") && test::contains("(7, 13)") &&
                        test::contains("(7,)"));
  CHECK_THROWS_AS(numbers<float>({0}) * numbers<float>({2}), xla::shape_error);
}

TEST_CASE("arithmetic is the same in every mode") {
  auto all = [](auto& a, auto& b) {
    return std::tuple(a + b, a - b, a * b, a / b, -a, (a + 2) * (3 - b) / (a * a + 1));
  };
  check_modes(all, numbers<float>({7, 13}, 1), numbers<float>({7, 13}, 2));
  check_modes(all, numbers<float>({17, 33}, 1), numbers<float>({33}, 2));
  check_modes(all, numbers<float>({0, 13}, 1), numbers<float>({0, 13}, 2));
  check_modes(all, numbers<std::int32_t>({2, 3, 5}, 1), numbers<std::int32_t>({5}, 2));
  std::vector<float> a, b;
  test::special_pairs(a, b);
  check_modes(all, xla::tensor(a), xla::tensor(b));
}

TEST_CASE("gradients of arithmetic") {
  const auto a = numbers<double>({3, 4}, 1), b = numbers<double>({3, 4}, 2) + 5.0;
  auto all = [](auto& x, auto& y) { return (x + y) * (x - y) / y - x * 3 + 1 / y; };
  check_gradient(all, a, b);
  check_gradient(all, a, numbers<double>({4}, 3) + 5.0);
  check_gradient(all, a, numbers<double>({3, 1}, 3) + 5.0);
  check_gradient(all, numbers<double>({4}, 3), numbers<double>({2, 3, 1}, 3) + 5.0);
  check_gradient([](auto& x) { return -x / (x * x + 2); }, a);
}
