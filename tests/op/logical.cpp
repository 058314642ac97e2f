// SPDX-License-Identifier: Apache-2.0
#include "xla/op/logical.hpp"

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
                      logical_xor(x > 0, a), (x > 1) == (x < 2), where(x > 0, a, b && x < 1),
                      where(a, b, !b));
  };
  test::check_modes(all, numbers<bool>({7, 13}, 1), numbers<bool>({7, 13}, 2),
                    numbers<float>({7, 13}, 3));
  test::check_modes(all, numbers<bool>({17, 33}, 1), numbers<bool>({33}, 2),
                    numbers<double>({17, 33}, 3));
}
