// SPDX-License-Identifier: Apache-2.0
#include "xla/op/compare.hpp"

#include "support/modes.hpp"

using test::check_equal;
using test::check_modes;
using test::map_pairs;
using test::numbers;

namespace {

template <class T, int A, int B>
void check_all(const xla::Tensor<T, A>& a, const xla::Tensor<T, B>& b) {
  const auto sizes = test::broadcast(a.sizes(), b.sizes());
  check_equal(a == b, sizes, map_pairs<bool>(a, b, [](T x, T y) { return x == y; }));
  check_equal(a != b, sizes, map_pairs<bool>(a, b, [](T x, T y) { return x != y; }));
  check_equal(a < b, sizes, map_pairs<bool>(a, b, [](T x, T y) { return x < y; }));
  check_equal(a <= b, sizes, map_pairs<bool>(a, b, [](T x, T y) { return x <= y; }));
  check_equal(a > b, sizes, map_pairs<bool>(a, b, [](T x, T y) { return x > y; }));
  check_equal(a >= b, sizes, map_pairs<bool>(a, b, [](T x, T y) { return x >= y; }));
}

}  // namespace

TEMPLATE_TEST_CASE("comparisons are those of the element type", "", float, double, std::int32_t,
                   std::int64_t, std::uint8_t) {
  const xla::eager_mode_guard eager;
  std::vector<TestType> a, b;
  test::special_pairs(a, b);
  check_all(xla::tensor(a), xla::tensor(b));
}

TEST_CASE("comparisons broadcast") {
  const xla::eager_mode_guard eager;
  check_all(numbers<float>({7, 13}, 1), numbers<float>({13}, 2));
  check_all(numbers<std::int32_t>({7, 1}, 1), numbers<std::int32_t>({1, 13}, 2));
  check_all(numbers<float>({0, 2}), numbers<float>({2}));
  const auto x = numbers<std::int64_t>({33});
  check_equal(x == 3, {33}, test::map_each<bool>(x, [](auto v) { return v == 3; }));
  check_equal(3 > x, {33}, test::map_each<bool>(x, [](auto v) { return 3 > v; }));
  const bool p[] = {true, false, true, false}, q[] = {true, true, false, false};
  check_equal(xla::tensor(p) == xla::tensor(q), {4}, {true, false, false, true});
  check_all(xla::tensor(p), xla::tensor(q));
  check_equal(xla::tensor(p) == true, {4}, {true, false, true, false});
  check_equal(1 > xla::tensor(p), {4}, {false, true, false, true});
}

TEST_CASE("next to a tensor of bool a number is 0 or 1") {
  const auto sentence = test::contains("next to a tensor of bool a number is 0 or 1");
  const xla::eager_mode_guard eager;
  const bool p[] = {true, false};
  CHECK_THROWS_WITH(xla::tensor(p) == 2, sentence);
  CHECK_THROWS_WITH(-1 < xla::tensor(p), sentence);
}

TEST_CASE("comparisons are the same in every mode") {
  auto all = [](auto& a, auto& b) {
    return std::tuple(a == b, a != b, a < b, a <= b, a > b, a >= b, a + 1 > b * 2, 1 <= a);
  };
  check_modes(all, numbers<float>({7, 13}, 1), numbers<float>({7, 13}, 2));
  check_modes(all, numbers<std::int64_t>({17, 33}, 1), numbers<std::int64_t>({33}, 2));
  auto ordered = [](auto& a, auto& b) {
    const auto p = a > 0, q = b > 0;
    return std::tuple(p < q, p <= q, p > q, p >= q, p == q, p < 1, p && (p > q));
  };
  check_modes(ordered, numbers<float>({7, 13}, 1), numbers<float>({7, 13}, 2));
  std::vector<float> a, b;
  test::special_pairs(a, b);
  check_modes(all, xla::tensor(a), xla::tensor(b));
}
