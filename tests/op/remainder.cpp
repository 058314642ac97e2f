// SPDX-License-Identifier: Apache-2.0
#include "xla/op/remainder.hpp"
#include "xla/op/floor_divide.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::map_each;
using test::map_pairs;
using test::numbers;

namespace {

template <class T>
T rest(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fmod(a, b);
  else if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  else return static_cast<T>(a % b);
}
/// Python's %.
template <class T>
T modulo(T a, T b) {
  const T m = rest(a, b);
  return m != 0 && (m < 0) != (b < 0) ? static_cast<T>(m + b) : m;
}

/// Of integers as C++ divides, by zero 0.
template <class T>
T towards_zero(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::trunc(a / b);
  else if (b == 0) return 0;
  else if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return static_cast<T>(-static_cast<std::uint64_t>(a));
  else return static_cast<T>(a / b);
}
/// Python's //.
template <class T>
T downwards(T a, T b) {
  const T m = rest(a, b);
  const bool above = m != 0 && (m < 0) != (b < 0);
  if constexpr (std::is_floating_point_v<T>) {
    if (b == 0) return a / b;
    const T q = std::round((a - m) / b - (above ? T(1) : T(0)));
    return q != 0 ? q : std::copysign(T(0), a / b);
  } else {
    return static_cast<T>(towards_zero(a, b) - above);
  }
}

template <class T>
void check_all(const auto& x, const auto& y) {
  const auto sizes = test::broadcast(x.sizes(), y.sizes());
  check_equal(remainder(x, y), sizes, map_pairs<T>(x, y, modulo<T>));
  check_equal(fmod(x, y), sizes, map_pairs<T>(x, y, rest<T>));
  check_equal(floor_divide(x, y), sizes, map_pairs<T>(x, y, downwards<T>));
  check_equal(div(x, y, xla::Rounding::floor), sizes, map_pairs<T>(x, y, downwards<T>));
  check_equal(div(x, y, xla::Rounding::trunc), sizes, map_pairs<T>(x, y, towards_zero<T>));
}

}  // namespace

TEMPLATE_TEST_CASE("remainder has the divisor's sign, fmod the dividend's; whole quotients", "", float, double,
                   std::int32_t, std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_all<T>(numbers<T>({7, 13}, 1), numbers<T>({7, 13}, 2));
  check_all<T>(numbers<T>({7, 1}, 1), numbers<T>({1, 13}, 2));
  check_all<T>(numbers<T>({0, 2}, 1), numbers<T>({1, 2}, 2));
  std::vector<T> a, b;
  test::special_pairs(a, b);
  check_all<T>(xla::tensor(a), xla::tensor(b));
  const auto x = numbers<T>({33});
  check_equal(x % x, remainder(x, x));
  check_equal(x % 3, {33}, map_each<T>(x, [](T v) { return modulo(v, T(3)); }));
  check_equal(7 % x, {33}, map_each<T>(x, [](T v) { return modulo(T(7), v); }));
  check_equal(fmod(7, x), {33}, map_each<T>(x, [](T v) { return rest(T(7), v); }));
  check_equal(fmod(x, 3), {33}, map_each<T>(x, [](T v) { return rest(v, T(3)); }));
  check_equal(floor_divide(x, 3), {33}, map_each<T>(x, [](T v) { return downwards(v, T(3)); }));
  check_equal(floor_divide(7, x), {33}, map_each<T>(x, [](T v) { return downwards(T(7), v); }));
  const auto trunc = xla::Rounding::trunc;
  check_equal(div(x, 3, trunc), {33}, map_each<T>(x, [](T v) { return towards_zero(v, T(3)); }));
  check_equal(div(7, x, trunc), {33}, map_each<T>(x, [](T v) { return towards_zero(T(7), v); }));
}

TEST_CASE("whole quotients have PyTorch's numbers") {
  const xla::eager_mode_guard eager;
  const auto i = xla::tensor<std::int64_t>({-7, 7, -8, -1});
  check_equal(floor_divide(i, 2), {4}, std::vector<std::int64_t>{-4, 3, -4, -1});
  check_equal(div(i, 2, xla::Rounding::trunc), {4}, std::vector<std::int64_t>{-3, 3, -4, 0});
  check_equal(floor_divide(i, 0), {4}, std::vector<std::int64_t>(4, 0));
  check_equal(div(i, 2), {4}, std::vector<float>{-3.5f, 3.5f, -4, -0.5f});
  const auto x = xla::tensor<float>({1, -1, 7.5f, 0});
  // The quotient 10 is rounded up: one 0.1f less fits into 1.
  check_equal(floor_divide(x, 0.1f), {4}, std::vector<float>{9, -10, 74, 0});
  // The quotient 2.996 is 3 as a bfloat16.
  const auto y = xla::cast<xla::bfloat16>(xla::tensor<float>({191 / 64.f, -191 / 64.f}));
  const auto below_1 = xla::cast<xla::bfloat16>(xla::tensor<float>({255 / 256.f, 255 / 256.f}));
  const auto trunc = div(y, below_1, xla::Rounding::trunc);
  check_equal(xla::cast<float>(trunc), {2}, std::vector<float>{2, -2});
  check_equal(xla::cast<float>(floor_divide(y, 0.99609375)), {2}, std::vector<float>{2, -3});
  CHECK_THROWS_WITH(floor_divide(numbers<float>({2}), numbers<float>({3})),
                    test::contains("floor_divide: ") && test::contains("(2,) and (3,)"));
}

TEST_CASE("remainders are the same in every mode") {
  auto all = [](auto& x, auto& y) {
    return std::tuple(x % y, fmod(x, y) + 1, (x % 2) * (5 % y), fmod(x * 3, 2) - y,
                      floor_divide(x, y), floor_divide(x * 3, 2) - floor_divide(5, y),
                      div(x, y, xla::Rounding::trunc) + 1);
  };
  test::check_modes(all, numbers<float>({7, 13}, 1), numbers<float>({13}, 2));
  test::check_modes(all, numbers<double>({17, 33}, 1), numbers<double>({17, 33}, 2));
  test::check_modes(all, numbers<std::int32_t>({7, 13}, 1), numbers<std::int32_t>({7, 13}, 2));
  test::check_modes(all, numbers<std::int64_t>({7, 13}, 1), numbers<std::int64_t>({13}, 2));
  std::vector<double> a, b;
  test::special_pairs(a, b);
  test::check_modes(all, xla::tensor(a), xla::tensor(b));
}

TEST_CASE("the gradient of whole quotients is 0") {
  auto backward = [](auto& x, auto& y) {
    const auto q = floor_divide(x, y) + div(x, y, xla::Rounding::trunc);
    sum(q + x * 3).backward();
    return q;
  };
  auto x = test::parameter(numbers<float>({3, 5}, 1));
  auto y = test::parameter(numbers<float>({5}, 2));
  test::check_modes(backward, x, y);
  const xla::eager_mode_guard eager;
  backward(x, y);
  check_equal(x.grad(), {3, 5}, std::vector<float>(15, 3));
  check_equal(y.grad(), {5}, std::vector<float>(5, 0));
}

TEST_CASE("gradients of remainders") {
  test::check_gradient([](auto& x, auto& y) { return x % y + fmod(x, y) * 0.5 + (x * 2) % 1.5; },
                       numbers<double>({3, 5}, 1), numbers<double>({5}, 2));
}
