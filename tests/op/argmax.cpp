// SPDX-License-Identifier: Apache-2.0
#include "xla/op/argmax.hpp"

#include "support/modes.hpp"

using test::check_equal;
using test::numbers;
using ids = std::vector<std::int64_t>;

namespace {

template <class T>
ids by_rows(const T* x, std::int64_t rows, std::int64_t columns) {
  ids out;
  for (std::int64_t r = 0; r < rows; ++r, x += columns)
    out.push_back(std::max_element(x, x + columns) - x);
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("argmax is the first of the largest", "", float, double, std::int32_t,
                   std::uint8_t) {
  const xla::eager_mode_guard eager;
  for (auto [r, c] : {std::pair{7, 13}, {1, 1}, {33, 1}, {3, 1000}, {0, 4}}) {
    const auto x = numbers<TestType>({r, c});
    check_equal(argmax(x), {r}, by_rows(x.data(), r, c));
    check_equal(argmax(x, 1), {r}, by_rows(x.data(), r, c));
  }
  check_equal(argmax(xla::tensor<TestType>({{1, 9, 3}, {4, 2, 3}}), 0), {3}, ids{1, 0, 0});
  check_equal(argmax(xla::tensor<TestType>({2, 7, 7, 1})), {}, ids{1});
  check_equal(argmax(xla::tensor<TestType>({{1, 9}, {4, 2}}), 1, xla::keepdim), {2, 1}, ids{1, 0});
  check_equal(argmax(xla::tensor<TestType>({{{1, 2}, {3, 0}}, {{5, 5}, {4, 6}}}), 1), {2, 2},
              ids{1, 0, 0, 1});
}

TEMPLATE_TEST_CASE("argmin is the first of the smallest", "", float, double, std::int32_t,
                   std::uint8_t) {
  const xla::eager_mode_guard eager;
  for (auto [r, c] : {std::pair{7, 13}, {1, 1}, {33, 1}, {3, 1000}, {0, 4}}) {
    const auto x = numbers<TestType>({r, c});
    ids want;
    for (const TestType* row = x.data(); row != x.data() + r * c; row += c)
      want.push_back(std::min_element(row, row + c) - row);
    check_equal(argmin(x), {r}, want);
    check_equal(argmin(x, -1, xla::keepdim), {r, 1}, want);
  }
  check_equal(argmin(xla::tensor<TestType>({{1, 9, 3}, {4, 2, 3}}), 0), {3}, ids{0, 1, 0});
}

TEST_CASE("argmax and argmin take the first NaN") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  check_equal(argmax(xla::tensor<float>({{1, nan, inf, nan}, {-inf, -inf, -inf, -inf}})), {2},
              ids{1, 0});
  check_equal(argmin(xla::tensor<float>({{1, nan, -inf, nan}, {inf, inf, inf, inf}})), {2},
              ids{1, 0});
}

TEST_CASE("argmax and argmin refuse an axis that does not exist or has no elements") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_AS(argmax(numbers<float>({2, 3}), 2), xla::shape_error);
  CHECK_THROWS_AS(argmax(numbers<float>({2, 0})), xla::shape_error);
  CHECK_THROWS_WITH(argmin(numbers<float>({2, 3}), 2), test::contains("argmin: a tensor with 2"));
  CHECK_THROWS_WITH(argmin(numbers<float>({2, 0})), test::contains("argmin: the axis has no"));
}

TEST_CASE("argmax is the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(argmax(x), argmax(x, 0), argmin(x, 0, xla::keepdim),
                      xla::cast<float>(argmax(x * x)) + 1);
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<std::int64_t>({17, 33}));
}
