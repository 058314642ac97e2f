// SPDX-License-Identifier: Apache-2.0
#include "xla/op/sort.hpp"

#include <algorithm>
#include <numeric>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/indexing.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;
using ids = std::vector<std::int64_t>;

namespace {

template <class T>
bool less(T a, T b) {
  return a < b || (b != b && a == a);
}

/// The order of n elements that are step apart, by a stable sort.
template <class T>
ids order(const T* x, std::int64_t n, std::int64_t step, bool descending) {
  ids out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) {
    return descending ? less(x[b * step], x[a * step]) : less(x[a * step], x[b * step]);
  });
  return out;
}

/// argsort, sort and topk along axis 1 of (outer, n, inner).
template <class T>
void check_order(const xla::Tensor<T, 3>& x, std::int64_t k) {
  const auto outer = x.sizes()[0], n = x.sizes()[1], inner = x.sizes()[2];
  for (const bool down : {false, true}) {
    ids index(static_cast<std::size_t>(outer * n * inner)),
        first(static_cast<std::size_t>(outer * k * inner));
    std::vector<T> values(index.size()), top(first.size());
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) {
        const T* line = x.data() + o * n * inner + i;
        const ids by = order(line, n, inner, down);
        for (std::int64_t r = 0; r < n; ++r) {
          const auto from = by[static_cast<std::size_t>(r)];
          const auto at = static_cast<std::size_t>((o * n + r) * inner + i);
          index[at] = from;
          values[at] = line[from * inner];
          if (r >= k) continue;
          const auto to = static_cast<std::size_t>((o * k + r) * inner + i);
          first[to] = from;
          top[to] = line[from * inner];
        }
      }
    check_equal(argsort(x, 1, down), x.sizes(), index);
    const auto [sorted, where] = sort(x, -2, down);
    check_equal(where, x.sizes(), index);
    check_equal(sorted, x.sizes(), values);
    const auto [best, places] = topk(x, k, 1, down);
    check_equal(places, {outer, k, inner}, first);
    check_equal(best, {outer, k, inner}, top);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("sort, argsort and topk agree with a stable sort", "", float, double,
                   std::int32_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_order(numbers<T>({7, 13, 1}), 5);
  check_order(numbers<T>({1, 1000, 1}), 10);
  check_order(numbers<T>({3, 33, 5}), 33);
  check_order(numbers<T>({1, 1, 1}), 1);
  check_order(numbers<T>({2, 5, 3}), 0);
  check_order(numbers<T>({4, 0, 3}), 0);
  check_order(numbers<T>({0, 3, 3}), 2);
  check_order(numbers<T>({300, 257, 2}), 3);
}

TEST_CASE("NaN is larger than every number, and 0 equals -0") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const auto x = xla::tensor<float>({nan, 0, inf, -0.f, nan, -inf, 1});
  check_equal(argsort(x), {7}, ids{5, 1, 3, 6, 2, 0, 4});
  check_equal(argsort(x, 0, true), {7}, ids{0, 4, 2, 6, 1, 3, 5});
  check_equal(topk(x, 3).second, {3}, ids{0, 4, 2});
  check_equal(topk(x, 2, 0, false).first, {2}, std::vector<float>{-inf, 0});
  check_equal(xla::cast<int>(sort(xla::tensor<float>({1, 0, 2}) > 0).first), {3},
              std::vector<int>{0, 1, 1});
}

TEST_CASE("sort and topk refuse an axis that does not exist and too large a k") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({2, 3});
  CHECK_THROWS_WITH(sort(x, 2), test::contains("sort: a tensor with 2 axes has no axis 2"));
  CHECK_THROWS_AS(argsort(x, -3), xla::shape_error);
  CHECK_THROWS_WITH(topk(x, 4), test::contains("topk: k is larger than the number of elements"));
  CHECK_THROWS_WITH(topk(x, -1), test::contains("topk: k is negative"));
  auto first_three = xla::compile([](auto& v) { return topk(v, 3).first; });
  CHECK(first_three(x).sizes() == test::sizes_t{2, 3});
  auto narrow = numbers<float>({3, 2});
  CHECK_THROWS_WITH(first_three(narrow), test::contains("topk: k is larger"));
  CHECK_THROWS_AS(first_three(narrow), xla::shape_error);
}

TEST_CASE("sorting is the same in every mode") {
  auto all = [](auto& x) {
    const auto [values, index] = sort(x, 0);
    const auto [top, places] = topk(x * 2, 3, -1, false);
    return std::tuple(values, index, top + 1, places, argsort(x, -1, true),
                      take_along_dim(x, argsort(x), 1));
  };
  check_modes(all, numbers<float>({7, 13}));
  check_modes(all, numbers<double>({17, 3}));
  check_modes(all, numbers<std::int64_t>({5, 33}));
}

TEST_CASE("gradients flow through the values of sort and topk, the same in every mode") {
  auto all = [](auto& p) {
    const auto [top, places] = topk(p, 2);
    const auto values = sort(p * p, 0, true).first;
    (sum(top * top) + sum(values * (xla::cast<float>(xla::arange(p.size(1))) + 1))).backward();
    return places;
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({4, 5}));
  p.copy_(numbers<float>({4, 5}));
  check_modes(all, p);
  const auto x = numbers<double>({4, 5});
  test::check_gradient([](auto& a) { return sort(a * a, 0).first; }, x);
  test::check_gradient([](auto& a) { return topk(a * a * a, 3, 1, false).first; }, x);
}

TEMPLATE_TEST_CASE("searchsorted agrees with lower_bound and upper_bound", "", float, double,
                   std::int32_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto values = numbers<T>({3, 7000}, 1);
  for (const std::int64_t n : {0, 1, 2, 33}) {
    const auto one = sort(numbers<T>({n})).first;
    const auto rows = sort(numbers<T>({3, n}), 1).first;
    for (const bool right : {false, true}) {
      ids in_one, in_row;
      for (std::int64_t i = 0; i < 21000; ++i) {
        const auto place = [&](const T* from) {
          const T x = values.data()[i];
          return (right ? std::upper_bound(from, from + n, x)
                        : std::lower_bound(from, from + n, x)) -
                 from;
        };
        in_one.push_back(place(one.data()));
        in_row.push_back(place(rows.data() + i / 7000 * n));
      }
      check_equal(searchsorted(one, values, right), {3, 7000}, in_one);
      check_equal(bucketize(values, one, right), {3, 7000}, in_one);
      check_equal(searchsorted(rows, values, right), {3, 7000}, in_row);
    }
  }
}

TEST_CASE("searchsorted of equals, NaN and a number; what it refuses; in every mode") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf("");
  const auto x = xla::tensor<float>({1, 2, 2, 3, nan});
  check_equal(searchsorted(x, xla::tensor<float>({0, 2, 2.5, 4, nan})), {5}, ids{0, 1, 3, 4, 4});
  check_equal(searchsorted(x, xla::tensor<float>({0, 2, 2.5, 4, nan}), true), {5},
              ids{0, 3, 3, 4, 5});
  CHECK(searchsorted(x, 2).item() == 1);
  CHECK(searchsorted(x, 2, true).item() == 3);
  const auto rows = numbers<float>({3, 4});
  CHECK_THROWS_WITH(searchsorted(rows, numbers<float>({2, 4})),
                    test::contains("sequences of shape (3, 4) for values of shape (2, 4)"));
  CHECK(searchsorted(rows, numbers<float>({3, 0})).sizes() == test::sizes_t{3, 0});
  auto all = [](auto& v) {
    const auto in_order = sort(v).first;
    return std::tuple(searchsorted(in_order, v * 0.5), searchsorted(sum(in_order, {0}), v, true),
                      bucketize(v, xla::arange<float>(v.size(1))), searchsorted(in_order[0] * 1, 0.5));
  };
  check_modes(all, numbers<float>({3, 33}));
  auto compiled = xla::compile([](auto& a, auto& b) { return searchsorted(a, b); });
  auto two = numbers<float>({2, 4}), three = rows;
  CHECK_THROWS_AS(compiled(three, two), xla::shape_error);
}
