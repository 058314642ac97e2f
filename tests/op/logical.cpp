// SPDX-License-Identifier: Apache-2.0
#include "xla/op/bitwise.hpp"

#include "support/modes.hpp"
#include "xla/op/where.hpp"

using test::check_equal;
using test::map_pairs;
using test::numbers;

TEST_CASE("and, or and not of bool") {
  const xla::eager_mode_guard eager;
  auto check = [](const auto& a, const auto& b) {
    const auto sizes = test::broadcast(a.sizes(), b.sizes());
    check_equal(a && b, sizes, map_pairs<bool>(a, b, [](bool x, bool y) { return x && y; }));
    check_equal(a || b, sizes, map_pairs<bool>(a, b, [](bool x, bool y) { return x || y; }));
    check_equal(logical_xor(a, b), sizes,
                map_pairs<bool>(a, b, [](bool x, bool y) { return x != y; }));
    check_equal(a & b, a && b);
    check_equal(a | b, a || b);
    check_equal(a ^ b, logical_xor(a, b));
    check_equal(a + b, a || b);
    check_equal(a * b, a && b);
    check_equal(~a, !a);
    check_equal(logical_and(a, b), a && b);
    check_equal(logical_or(a, b), a || b);
    check_equal(logical_not(a), !a);
    check_equal(!a, a.sizes(), test::map_each<bool>(a, [](bool x) { return !x; }));
  };
  check(numbers<bool>({7, 13}, 1), numbers<bool>({7, 13}, 2));
  check(numbers<bool>({7, 13}, 1), numbers<bool>({13}, 2));
  check(numbers<bool>({1}, 1), numbers<bool>({1000}, 2));
  check(numbers<bool>({0}), numbers<bool>({0}));
}

TEST_CASE("logic is the same in every mode") {
  auto all = [](auto& a, auto& b, auto& x) {
    return std::tuple(a && b, a || b, !a, !(x > 0) && (x < 1 || a), (x == x) && !b,
                      logical_xor(x > 0, a), a + b, a * (x > 0), (x > 1) == (x < 2), where(x > 0, a, b && x < 1),
                      where(a, b, !b));
  };
  test::check_modes(all, numbers<bool>({7, 13}, 1), numbers<bool>({7, 13}, 2),
                    numbers<float>({7, 13}, 3));
  test::check_modes(all, numbers<bool>({17, 33}, 1), numbers<bool>({33}, 2),
                    numbers<double>({17, 33}, 3));
}

TEMPLATE_TEST_CASE("the bits of integers", "", std::int32_t, std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  auto check = [](const auto& a, const auto& b) {
    const auto sizes = test::broadcast(a.sizes(), b.sizes());
    check_equal(a & b, sizes, map_pairs<T>(a, b, [](T x, T y) { return x & y; }));
    check_equal(a | b, sizes, map_pairs<T>(a, b, [](T x, T y) { return x | y; }));
    check_equal(a ^ b, sizes, map_pairs<T>(a, b, [](T x, T y) { return x ^ y; }));
    check_equal(~a, a.sizes(), test::map_each<T>(a, [](T x) { return ~x; }));
    check_equal(bitwise_and(a, b), a & b);
    check_equal(bitwise_or(a, b), a | b);
    check_equal(bitwise_xor(a, b), a ^ b);
    check_equal(bitwise_not(a), ~a);
  };
  check(numbers<T>({7, 13}, 1), numbers<T>({7, 13}, 2));
  check(numbers<T>({7, 1}, 1), numbers<T>({13}, 2));
  check(numbers<T>({0}), numbers<T>({0}));
  std::vector<T> a, b;
  test::special_pairs(a, b);
  check(xla::tensor(a), xla::tensor(b));
  const auto x = xla::tensor<T>({0, 1, 6, 13});
  check_equal(x & 5, {4}, std::vector<T>{0, 1, 4, 5});
  check_equal(5 | x, {4}, std::vector<T>{5, 5, 7, 13});
  check_equal(x ^ 1, {4}, std::vector<T>{1, 0, 7, 12});
  check_equal(bitwise_and(5, x), x & 5);
  CHECK_THROWS_WITH(bitwise_and(numbers<T>({2}), numbers<T>({3})),
                    test::contains("bitwise_and: ") && test::contains("(2,) and (3,)"));
}

TEST_CASE("bits are the same in every mode") {
  auto all = [](auto& a, auto& b) {
    return std::tuple(a & b, a | b, a ^ b, ~a, (a & 3) | (b ^ 5), ~(a & b) + 1,
                      (a > 0) & ~(b > 0), (a > b) | (b == 2), (a < 1) ^ (b < 1), 6 & a);
  };
  test::check_modes(all, numbers<std::int64_t>({7, 13}, 1), numbers<std::int64_t>({13}, 2));
  test::check_modes(all, numbers<std::int32_t>({17, 33}, 1), numbers<std::int32_t>({17, 33}, 2));
  test::check_modes(all, numbers<std::uint8_t>({5}, 1), numbers<std::uint8_t>({2, 5}, 2));
}
