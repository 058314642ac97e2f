// SPDX-License-Identifier: Apache-2.0
#include "xla/op/median.hpp"

#include <algorithm>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/indexing.hpp"

using test::check_equal;
using test::numbers;
using ids = std::vector<std::int64_t>;

namespace {

/// Along axis 1 of (outer, n, inner), by a stable sort of each line.
template <class T>
void check_median(const xla::Tensor<T, 3>& x) {
  const auto outer = x.sizes()[0], n = x.sizes()[1], inner = x.sizes()[2];
  ids index;
  std::vector<T> values;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      const T* line = x.data() + o * n * inner + i;
      ids order;
      for (std::int64_t k = 0; k < n; ++k) order.push_back(k);
      std::stable_sort(order.begin(), order.end(),
                       [&](auto a, auto b) { return line[a * inner] < line[b * inner]; });
      index.push_back(order[static_cast<std::size_t>((n - 1) / 2)]);
      values.push_back(line[index.back() * inner]);
    }
  const auto [v, at] = median(x, 1);
  check_equal(v, {outer, inner}, values);
  check_equal(at, {outer, inner}, index);
  const auto [kept, where] = median(x, -2, xla::keepdim);
  check_equal(kept, {outer, 1, inner}, values);
  check_equal(where, {outer, 1, inner}, index);
}

}  // namespace

TEMPLATE_TEST_CASE("median finds the lower of the middle elements", "", float, double, std::int32_t,
                   std::int64_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_median(numbers<T>({7, 5, 1}));
  check_median(numbers<T>({3, 8, 13}));
  check_median(numbers<T>({1, 1000, 1}));
  check_median(numbers<T>({1, 1, 1}));
  check_median(numbers<T>({0, 2, 3}));
  check_median(numbers<T>({2, 3, 0}));
  check_median(numbers<T>({300, 301, 2}));
  CHECK(median(xla::tensor<T>({{5, 1, 4}, {3, 2, 6}})).item() == T(3));
  CHECK(median(xla::tensor<T>({{5, 1, 4}})).item() == T(4));
  CHECK(median(xla::tensor(T(7))).item() == T(7));
}

TEST_CASE("median of special values") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const auto x = xla::tensor<float>({{1, nan, 2, nan}, {inf, -inf, inf, -inf}, {-0.f, 0, 0, -0.f}});
  const auto [values, index] = median(x, 1);
  check_equal(values, {3}, std::vector<float>{nan, -inf, 0.f});
  check_equal(index, {3}, ids{1, 3, 1});
  CHECK(std::isnan(median(x).item()));
}

TEST_CASE("median refuses what has no elements, and axes that do not exist") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH(median(numbers<float>({0, 3})),
                    test::contains("median: there are no elements"));
  CHECK_THROWS_WITH(median(numbers<float>({2, 0}), 1),
                    test::contains("median: there are no elements"));
  CHECK_THROWS_WITH(median(numbers<float>({2, 3}), 2),
                    test::contains("median: a tensor with 2 axes has no axis 2"));
  auto compiled = xla::compile([](auto& x) { return median(x); });
  auto nothing = numbers<float>({0});
  CHECK_THROWS_WITH(compiled(nothing), test::contains("median: there are no elements"));
}

TEST_CASE("median is the same in every mode, with its gradient") {
  auto all = [](auto& x) {
    const auto [values, index] = median(x * 2, 0);
    return std::tuple(values, index, median(x), median(x, -1, xla::keepdim).first + x);
  };
  test::check_modes(all, numbers<float>({7, 12}));
  test::check_modes(all, numbers<double>({1, 33}));
  test::check_modes(all, numbers<std::int64_t>({5, 4}));
  auto backward = [](auto& p) {
    const auto y = median(p, 1).first;
    (sum(y * y) + median(p * 3)).backward();
    return y;
  };
  test::check_modes(backward, test::parameter(numbers<float>({4, 5})));
}

TEST_CASE("the gradients of median; equal elements share that of all elements") {
  const auto x = numbers<double>({3, 4, 2});
  test::check_gradient([](auto& a) { return median(a * a, 1).first; }, x);
  test::check_gradient([](auto& a) { return median(a * a, -1, xla::keepdim).first * a; }, x);
  test::check_gradient([](auto& a) { return median(a * a); }, x);
  test::check_gradient(
      [](auto& a) {
        const auto y = median(a * a * a);
        return xla::grad(y * y, a, {.create_graph = true});
      },
      x);
  const xla::eager_mode_guard eager;
  auto p = test::parameter(xla::tensor<float>({1, 3, 3, 5, 3}));
  (median(p) * 6).backward();
  check_equal(p.grad(), {5}, std::vector<float>{0, 2, 2, 0, 2});
  p.zero_grad();
  sum(median(p, 0).first * 6).backward();
  check_equal(p.grad(), {5}, std::vector<float>{0, 0, 6, 0, 0});
}
