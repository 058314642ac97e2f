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
template <class T>
T over(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a / b;
  else if (b == 0) return 0;
  else if (std::is_signed_v<T> && b == static_cast<T>(-1)) return minus(T(0), a);
  else return static_cast<T>(a / b);
}

template <class T, int A, int B>
void check_all(const xla::Tensor<T, A>& a, const xla::Tensor<T, B>& b) {
  const auto sizes = test::broadcast(a.sizes(), b.sizes());
  check_equal(a + b, sizes, map_pairs<T>(a, b, plus<T>));
  check_equal(a - b, sizes, map_pairs<T>(a, b, minus<T>));
  check_equal(a * b, sizes, map_pairs<T>(a, b, times<T>));
  check_equal(a / b, sizes, map_pairs<T>(a, b, over<T>));
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

TEST_CASE("a number stands on either side") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 13});
  check_equal(x + 2, x.sizes(), map_each<float>(x, [](float v) { return v + 2; }));
  check_equal(2 - x, x.sizes(), map_each<float>(x, [](float v) { return 2 - v; }));
  check_equal(x * 0.1, x.sizes(), map_each<float>(x, [](float v) { return v * 0.1f; }));
  check_equal(1 / x, x.sizes(), map_each<float>(x, [](float v) { return 1 / v; }));
  check_equal(x / x.size(0), x.sizes(), map_each<float>(x, [](float v) { return v / 7; }));
  const auto i = numbers<std::int64_t>({5});
  check_equal(i / 3, {5}, map_each<std::int64_t>(i, [](std::int64_t v) { return v / 3; }));
  check_equal(7 - i, {5}, map_each<std::int64_t>(i, [](std::int64_t v) { return 7 - v; }));
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
