// SPDX-License-Identifier: Apache-2.0
#include "xla/op/slice.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;
using test::sizes_t;
using xla::none;

namespace {

/// The elements first, first + step … of one axis, by a plain loop.
template <class T, int R>
void check_part(const xla::Tensor<T, R>& got, const xla::Tensor<T, R>& x, int axis,
                std::int64_t first, std::int64_t length, std::int64_t step) {
  sizes_t sizes = x.sizes();
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= sizes[static_cast<std::size_t>(i)];
  for (int i = axis + 1; i < R; ++i) inner *= sizes[static_cast<std::size_t>(i)];
  const std::int64_t n = sizes[static_cast<std::size_t>(axis)];
  std::vector<T> want;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 0; k < length; ++k)
      for (std::int64_t i = 0; i < inner; ++i)
        want.push_back(x.data()[(o * n + first + k * step) * inner + i]);
  sizes[static_cast<std::size_t>(axis)] = length;
  check_equal(got, sizes, want);
}

/// Every pair of bounds, as Python resolves them.
void check_bounds(const xla::Tensor<float, 2>& x, int axis, std::int64_t step) {
  const std::int64_t n = x.size(axis);
  for (std::int64_t a = -n - 2; a <= n + 2; ++a)
    for (std::int64_t b = -n - 2; b <= n + 2; ++b) {
      const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
      const std::int64_t first = std::clamp(a < 0 ? a + n : a, low, high);
      const std::int64_t last = std::clamp(b < 0 ? b + n : b, low, high);
      std::int64_t length = 0;
      for (std::int64_t k = first; step > 0 ? k < last : k > last; k += step) ++length;
      INFO(a << ":" << b << ":" << step << " along axis " << axis);
      check_part(slice(x, axis, a, b, step), x, axis, first, length, step);
    }
}

}  // namespace

TEST_CASE("slices have Python's bounds") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3});
  for (int axis : {0, 1})
    for (std::int64_t step : {1, 2, 3, 7, -1, -2, -5}) check_bounds(x, axis, step);
  check_bounds(numbers<float>({0, 3}), 0, 1);
  check_bounds(numbers<float>({1, 3}), 0, -1);
}

TEMPLATE_TEST_CASE("slices of every element type", "", float, double, std::int32_t, std::int64_t,
                   std::uint8_t, bool) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto x = numbers<T>({3, 7, 13});
  check_equal(slice(x, 0), x);
  check_part(slice(x, 1, 2, 5), x, 1, 2, 3, 1);
  check_part(slice(x, -1, none, none, 3), x, 2, 0, 5, 3);
  check_part(slice(x, 2, none, none, -2), x, 2, 12, 7, -2);
  check_part(slice(x, 0, -1), x, 0, 2, 1, 1);
  check_part(narrow(x, 1, -4, 3), x, 1, 3, 3, 1);
  check_part(flip(x, {1}), x, 1, 6, 7, -1);
  check_equal(flip(flip(x, {0, -1}), {2, 0}), x);
  CHECK_THROWS_WITH(flip(x, {0, 0}), test::contains("flip: axis 0 of a tensor with 3 axes") &&
                                         test::contains("is repeated"));
  CHECK_THROWS_WITH(flip(x, {2, -1}), test::contains("flip: axis -1"));
  CHECK_THROWS_WITH(flip(x, {3}), test::contains("flip: axis 3"));
  check_equal(select(x, 1, 4), squeeze<1>(slice(x, 1, 4, 5)));
  check_equal(select(x, -1, -2), squeeze<2>(slice(x, 2, 11, 12)));
  check_equal(slice(x, 0, 0, 0), {0, 7, 13}, {});
  const auto most = std::numeric_limits<std::int64_t>::max();
  check_part(slice(x, 1, 2, most, most), x, 1, 2, 1, 1);
  check_part(slice(x, 1, most, -most, -3), x, 1, 6, 3, -3);
  CHECK_THROWS_AS(select(x, 0, most), xla::shape_error);
  CHECK_THROWS_AS(narrow(x, 0, 1, most), xla::shape_error);
}

TEST_CASE("slices large enough for several threads") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({300, 1001});
  check_part(slice(x, 1, 3, 900), x, 1, 3, 897, 1);
  check_part(slice(x, 1, none, none, -2), x, 1, 1000, 501, -2);
  check_part(slice(x, 0, 7, 290, 2), x, 0, 7, 142, 2);
}

TEST_CASE("the errors of slices") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3});
  CHECK_THROWS_AS(slice(x, 2, 0, 1), xla::shape_error);
  CHECK_THROWS_WITH(slice(x, 0, 0, 1, 0), test::contains("slice: a step of 0"));
  CHECK_THROWS_WITH(select(x, 1, 3), test::contains("index 3 of axis 1 of (4, 3)"));
  CHECK_THROWS_AS(select(x, 1, -4), xla::shape_error);
  CHECK_THROWS_AS(narrow(x, 0, 2, 3), xla::shape_error);
  CHECK_THROWS_AS(narrow(x, 0, -5, 1), xla::shape_error);
  CHECK_THROWS_AS(narrow(x, 0, 0, -1), xla::shape_error);
  CHECK_THROWS_AS(flip(x, {2}), xla::shape_error);
}

TEST_CASE("slices are the same in every mode") {
  auto all = [](auto& x) {
    const xla::Size n = x.size(0), m = x.size(1);
    const auto rest = slice(x, 0, 1) - slice(x, 0, 0, n - 1);
    return std::tuple(slice(x, 0, 1, 3) * 2, slice(x, 1, -2), slice(x, 0, none, -1, 2),
                      flip(x, {0, 1}) + x, select(x, 0, -1) + select(x, 1, 0), rest,
                      narrow(x, 1, m - 2, 1), slice(x, 0, n / 2, none, 3), slice(x, 0, none, 1, -1),
                      slice(slice(x, 1, 1), 1, 0, 1) - slice(x, 1, 1, 2));
  };
  check_modes(all, numbers<float>({7, 7}));
  check_modes(all, numbers<double>({5, 5}));
  check_modes(all, numbers<std::int32_t>({3, 3}));
}

TEST_CASE("slices of constants are the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(slice(xla::arange<float>(9), 0, 2, 5) + 1,
                      slice(xla::ones<float>({8, 2}), 0, 0, x.size(0)) * x,
                      select(xla::arange<float>(5), 0, -2) * x);
  };
  check_modes(all, numbers<float>({7, 2}));
  check_modes(all, numbers<float>({8, 2}));
}

TEST_CASE("bounds that sizes known at run time do not reach are refused when specialised") {
  const xla::eager_mode_guard eager;
  auto two = numbers<float>({2, 2}), five = numbers<float>({5, 2});
  auto refuses = [&](auto f, const char* sentence) {
    auto g = xla::compile(f);
    check_equal(g(five), f(five));
    CHECK_THROWS_WITH(g(two), test::contains(sentence));
    check_equal(g(five), f(five));
  };
  refuses([](auto& x) { return slice(x, 0, 1, 4); },
          "slice: axis 0 of argument 0 is 2 and has to be at least 4");
  refuses([](auto& x) { return slice(x, 0, -3); },
          "slice: axis 0 of argument 0 is 2 and has to be at least 3");
  refuses([](auto& x) { return select(x, 0, 2); },
          "select: axis 0 of argument 0 is 2 and has to be at least 3");
  refuses([](auto& x) { return select(x, 0, -3); }, "select: axis 0 of argument 0 is 2");
  refuses([](auto& x) { return narrow(x, 0, 2, 1); },
          "narrow: axis 0 of argument 0 is 2 and has to be at least 3");
  refuses([](auto& x) { return slice(x, 0, x.size(0) - 3); },
          "slice: axis 0 of argument 0 - 3 is -1 and has to be at least 0");
}

TEST_CASE("the gradients of slices") {
  const auto x = numbers<double>({4, 5});
  test::check_gradient([](auto& a) { return slice(a, 0, 1, 3) * slice(a, 0, 2); }, x);
  test::check_gradient([](auto& a) { return slice(a * a, 1, none, none, 2); }, x);
  test::check_gradient([](auto& a) { return flip(a, {0, 1}) * a + select(a, 0, 1); }, x);
  test::check_gradient([](auto& a) { return slice(a, 1, 4, 0, -2) * narrow(a, 1, 0, 2); }, x);
  test::check_gradient(
      [](auto& a) {
        const auto y = slice(a, 0, 1, 3) * slice(a, 0, 2) * slice(a, 0, 0, 2) + slice(a, 0, 1, 3);
        return xla::grad(sum(y * y), a, {.create_graph = true});
      },
      x);
}

TEST_CASE("sizes with numbers below 0, and terms that cancel, are the same in every mode") {
  auto all = [](auto& x) {
    const xla::Size n = x.size(0), m = x.size(1);
    return std::tuple(xla::arange<float>(n + -2), xla::arange<float>(-2 + n),
                      xla::arange<float>(n - -2), xla::arange<float>(n * -1 + n * 3),
                      xla::arange<float>(5 - n + 4), xla::arange<float>((n + m) - (n - 1)),
                      xla::arange<float>((n - 3) + (m - n) + 3), xla::arange<float>(n / -1 + 9),
                      xla::zeros<float>({n - 1 + 1, m + n - n}) + x);
  };
  check_modes(all, numbers<float>({7, 7}));
  check_modes(all, numbers<float>({3, 5}));
}
