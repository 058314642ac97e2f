// SPDX-License-Identifier: Apache-2.0
#include "xla/op/remainder.hpp"

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

template <class T>
void check_all(const auto& x, const auto& y) {
  const auto sizes = test::broadcast(x.sizes(), y.sizes());
  check_equal(remainder(x, y), sizes, map_pairs<T>(x, y, modulo<T>));
  check_equal(fmod(x, y), sizes, map_pairs<T>(x, y, rest<T>));
}

}  // namespace

TEMPLATE_TEST_CASE("remainder has the divisor's sign, fmod the dividend's", "", float, double,
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
}

TEST_CASE("remainders are the same in every mode") {
  auto all = [](auto& x, auto& y) {
    return std::tuple(x % y, fmod(x, y) + 1, (x % 2) * (5 % y), fmod(x * 3, 2) - y);
  };
  test::check_modes(all, numbers<float>({7, 13}, 1), numbers<float>({13}, 2));
  test::check_modes(all, numbers<double>({17, 33}, 1), numbers<double>({17, 33}, 2));
  test::check_modes(all, numbers<std::int32_t>({7, 13}, 1), numbers<std::int32_t>({7, 13}, 2));
}

TEST_CASE("gradients of remainders") {
  test::check_gradient([](auto& x, auto& y) { return x % y + fmod(x, y) * 0.5 + (x * 2) % 1.5; },
                       numbers<double>({3, 5}, 1), numbers<double>({5}, 2));
}
