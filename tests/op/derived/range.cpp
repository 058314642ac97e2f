// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/range.hpp"

#include "support/modes.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

TEMPLATE_TEST_CASE("arange between bounds", "", float, double, std::int32_t, std::int64_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  for (auto [start, end, step] : {std::array{2, 7, 1},
                                  {0, 10, 3},
                                  {-4, 5, 2},
                                  {5, -4, -2},
                                  {7, 0, -1},
                                  {3, 3, 1},
                                  {5, 2, 1},
                                  {2, 5, -1}}) {
    std::vector<T> want;
    for (int v = start; step > 0 ? v < end : v > end; v += step) want.push_back(static_cast<T>(v));
    INFO(start << " to " << end << " by " << step);
    check_equal(xla::arange<T>(start, end, step), {static_cast<std::int64_t>(want.size())}, want);
  }
  CHECK_THROWS_AS(xla::arange<T>(0, 5, 0), xla::shape_error);
}

TEST_CASE("arange of fractions") {
  const xla::eager_mode_guard eager;
  check_equal(xla::arange<float>(0, 1, 0.25), {4}, std::vector<float>{0, 0.25f, 0.5f, 0.75f});
  check_equal(xla::arange<double>(1, 0, -0.375), {3}, std::vector<double>{1, 0.625, 0.25});
  check_equal(xla::arange<float>(0.5, 3), {3}, std::vector<float>{0.5f, 1.5f, 2.5f});
  CHECK(xla::arange<float>(1.0, 0.0, 0.5).numel() == 0);
  CHECK_THROWS_AS(xla::arange<float>(0.0, std::nan("")), xla::shape_error);
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  CHECK(xla::arange(big, big + 2).to_vector()[1] == big + 1);
}

TEMPLATE_TEST_CASE("linspace", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_equal(xla::linspace<T>(0, 1, 5), {5}, std::vector<T>{0, 0.25, 0.5, 0.75, 1});
  check_equal(xla::linspace<T>(3, -1, 3), {3}, std::vector<T>{3, 1, -1});
  check_equal(xla::linspace<T>(2, 5, 1), {1}, std::vector<T>{2});
  check_equal(xla::linspace<T>(2, 5, 0), {0}, {});
  for (std::int64_t n : {2, 3, 7, 50, 1000}) {
    std::vector<T> want;
    for (std::int64_t i = 0; i < n; ++i)
      want.push_back(
          static_cast<T>(0.1 + (0.9 - 0.1) * static_cast<double>(i) / static_cast<double>(n - 1)));
    const auto got = xla::linspace<T>(T(0.1), T(0.9), n);
    check_equal(got, {n}, want, std::is_same_v<T, float> ? 3e-7 : 1e-15);
    CHECK(got.to_vector().front() == T(0.1));
    CHECK(got.to_vector().back() == T(0.9));
  }
}

TEST_CASE("meshgrid spans a grid") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({1, 2, 3}), y = xla::tensor<float>({4, 5});
  const auto [a, b] = meshgrid(x, y);
  check_equal(a, {3, 2}, std::vector<float>{1, 1, 2, 2, 3, 3});
  check_equal(b, {3, 2}, std::vector<float>{4, 5, 4, 5, 4, 5});
  const auto three = meshgrid(x, y, x);
  CHECK(three[1].sizes() == test::sizes_t{3, 2, 3});
  CHECK(three[2][1][0][2].item() == 3);
  CHECK(three[1][1][1][2].item() == 5);
}

TEST_CASE("ranges are the same in every mode") {
  auto all = [](auto& x) {
    const auto [r, c] = meshgrid(select(x, 0, 0), xla::arange<float>(x.size(0)));
    return std::tuple(xla::arange<float>(1, 8, 2), xla::arange<float>(2, x.size(1)) * 2,
                      xla::arange<std::int64_t>(x.size(0), x.size(0) + x.size(1)),
                      xla::arange<float>(0, 1, 0.1), xla::linspace(0.1, 0.7, 6),
                      xla::linspace<double>(-1, 2, x.size(0)), r * c);
  };
  check_modes(all, numbers<float>({7, 13}));
  check_modes(all, numbers<float>({1, 2}));
}
