// SPDX-License-Identifier: Apache-2.0
#include "xla/op/reduce.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::numbers;

namespace {

/// Reduces the axes in `axes` by a plain loop in double (or wrapping integers).
template <class T, class F>
std::vector<T> reduced(const T* x, const test::sizes_t& sizes, const std::vector<int>& axes, T start,
                       F f) {
  test::sizes_t kept = sizes;
  for (int a : axes) kept[static_cast<std::size_t>(a)] = 1;
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  std::vector<Sum> out(static_cast<std::size_t>(test::product(kept)), Sum(start));
  for (std::int64_t i = 0; i < test::product(sizes); ++i) {
    Sum& o = out[test::source_of(i, sizes, kept)];
    o = static_cast<Sum>(f(o, Sum(x[i])));
  }
  return std::vector<T>(out.begin(), out.end());
}

/// Of integers in 64 bits.
template <class T>
auto summed(const T* x, const test::sizes_t& sizes, const std::vector<int>& axes) {
  using Total = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  const std::vector<Total> wide(x, x + test::product(sizes));
  return reduced(wide.data(), sizes, axes, Total(0), [](auto a, auto b) { return a + b; });
}
template <class T>
std::vector<T> largest(const T* x, const test::sizes_t& sizes, const std::vector<int>& axes) {
  using limits = std::numeric_limits<T>;
  const T start = limits::has_infinity ? -limits::infinity() : limits::lowest();
  return reduced(x, sizes, axes, start, [](auto a, auto b) {
    return a != a ? a : b != b ? b : a < b ? b : a;
  });
}
template <class T>
std::vector<T> smallest(const T* x, const test::sizes_t& sizes, const std::vector<int>& axes) {
  using limits = std::numeric_limits<T>;
  const T start = limits::has_infinity ? limits::infinity() : limits::max();
  return reduced(x, sizes, axes, start, [](auto a, auto b) {
    return a != a ? a : b != b ? b : b < a ? b : a;
  });
}

constexpr double tolerance = 1e-6;

template <class T>
void check_matrix(std::int64_t rows, std::int64_t columns) {
  const auto x = numbers<T>({rows, columns}, 1);
  const T* p = x.data();
  const test::sizes_t s{rows, columns};
  const double t = std::is_same_v<T, float> ? tolerance * 30 : 1e-13;
  check_equal(sum(x, {0}), {columns}, summed(p, s, {0}), t);
  check_equal(sum(x, {1}), {rows}, summed(p, s, {1}), t);
  check_equal(sum(x, {-1}, xla::keepdim), {rows, 1}, summed(p, s, {1}), t);
  check_equal(sum(x), {}, summed(p, s, {0, 1}), t);
  check_equal(max(x, {0}), {columns}, largest(p, s, {0}));
  check_equal(max(x, {1}), {rows}, largest(p, s, {1}));
  check_equal(max(x), {}, largest(p, s, {0, 1}));
  check_equal(min(x, {0}, xla::keepdim), {1, columns}, smallest(p, s, {0}));
  check_equal(min(x, {1}), {rows}, smallest(p, s, {1}));
  check_equal(min(x), {}, smallest(p, s, {0, 1}));
}

}  // namespace

TEMPLATE_TEST_CASE("sum, max and min of matrices", "", float, double, std::int32_t, std::int64_t,
                   std::uint8_t) {
  const xla::eager_mode_guard eager;
  check_matrix<TestType>(7, 13);
  check_matrix<TestType>(1, 1);
  check_matrix<TestType>(17, 1);
  check_matrix<TestType>(1, 1000);
  check_matrix<TestType>(1000, 33);
  check_matrix<TestType>(0, 5);
  check_matrix<TestType>(5, 0);
}

TEST_CASE("sums of integers and bool are 64-bit, as in PyTorch") {
  const xla::eager_mode_guard eager;
  using whole = std::vector<std::int64_t>;
  const auto pixels = xla::tensor<std::uint8_t>({{250, 250}, {1, 2}});
  check_equal(sum(pixels), {}, whole{503});
  check_equal(sum(pixels, {1}), {2}, whole{500, 3});
  check_equal(sum(pixels, {0}, xla::keepdim), {1, 2}, whole{251, 252});
  const auto high = std::numeric_limits<std::int32_t>::max();
  check_equal(sum(xla::tensor<std::int32_t>({high, high})), {}, whole{2 * std::int64_t(high)});
  check_equal(sum(pixels > 1), {}, whole{3});
  check_equal(sum(pixels > 1, {0}), {2}, whole{1, 2});
  check_equal(sum(pixels > 1, {1}, xla::keepdim), {2, 1}, whole{2, 1});
  check_equal(sum(xla::tensor<std::uint8_t>(7)), {}, whole{7});
}

TEST_CASE("reductions over any axes of a tensor with four") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 5, 7, 2});
  const test::sizes_t s = x.sizes();
  const float* p = x.data();
  check_equal(sum(x, {0}), {5, 7, 2}, summed(p, s, {0}), tolerance);
  check_equal(sum(x, {1}), {3, 7, 2}, summed(p, s, {1}), tolerance);
  check_equal(sum(x, {3}), {3, 5, 7}, summed(p, s, {3}), tolerance);
  check_equal(sum(x, {0, 2}), {5, 2}, summed(p, s, {0, 2}), tolerance);
  check_equal(sum(x, {1, 3}), {3, 7}, summed(p, s, {1, 3}), tolerance);
  check_equal(sum(x, {1, 2}), {3, 2}, summed(p, s, {1, 2}), tolerance);
  check_equal(sum(x, {-1, 0, 1}), {7}, summed(p, s, {0, 1, 3}), tolerance);
  check_equal(sum(x, {0, 2}, xla::keepdim), {1, 5, 1, 2}, summed(p, s, {0, 2}), tolerance);
  check_equal(max(x, {0, 2}), {5, 2}, largest(p, s, {0, 2}));
  check_equal(max(x, {1, 3}, xla::keepdim), {3, 1, 7, 1}, largest(p, s, {1, 3}));
  check_equal(min(x, {0, 3}), {5, 7}, smallest(p, s, {0, 3}));
}

TEST_CASE("means") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({7, 13});
  auto over = [](std::vector<double> v, double n) {
    for (auto& e : v) e /= n;
    return v;
  };
  check_equal(mean(x), {}, over(summed(x.data(), {7, 13}, {0, 1}), 91), 1e-14);
  check_equal(mean(x, {0}), {13}, over(summed(x.data(), {7, 13}, {0}), 7), 1e-14);
  check_equal(mean(x, {-1}, xla::keepdim), {7, 1}, over(summed(x.data(), {7, 13}, {1}), 13), 1e-14);
  CHECK(std::isnan(mean(numbers<double>({0})).item()));
}

TEST_CASE("reductions of special values") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {2, 7, 16, 33, 100}) {
    std::vector<float> v(static_cast<std::size_t>(n), 1.f);
    for (std::size_t at : {std::size_t{0}, v.size() / 2, v.size() - 1}) {
      auto w = v;
      w[at] = nan;
      CHECK(std::isnan(sum(xla::tensor(w)).item()));
      CHECK(std::isnan(max(xla::tensor(w)).item()));
      CHECK(std::isnan(min(xla::tensor(w)).item()));
      w[at] = -inf;
      CHECK(sum(xla::tensor(w)).item() == -inf);
      CHECK(max(xla::tensor(w)).item() == 1);
      CHECK(min(xla::tensor(w)).item() == -inf);
      w[at] = inf;
      w[(at + 1) % w.size()] = nan;
      CHECK(std::isnan(max(xla::tensor(w)).item()));
      CHECK(std::isnan(min(xla::tensor(w)).item()));
    }
  }
}

TEST_CASE("the largest and the smallest element are NaN wherever one is NaN") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf("");
  for (const std::int64_t n : {3, 16, 40, 150}) {
    const auto x = numbers<float>({n, n});
    const auto strange = where(xla::unsqueeze(xla::arange(n), 1) == xla::arange(n), nan, x);
    for (const auto& y : {max(strange, {1}), min(strange, {1})})
      CHECK(xla::cast<std::int64_t>(y != y).to_vector() ==
            std::vector<std::int64_t>(static_cast<std::size_t>(n), 1));
    const auto y = max(x, {1});
    CHECK(sum(y != y).item() == 0);
  }
}

TEST_CASE("a reduction refuses axes that do not exist or are repeated") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 4});
  CHECK_THROWS_AS(sum(x, {2}), xla::shape_error);
  CHECK_THROWS_AS(max(x, {-3}), xla::shape_error);
  CHECK_THROWS_AS(sum(x, {1, -1}), xla::shape_error);
}

TEST_CASE("reductions are the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(sum(x), sum(x, {0}), sum(x, {1}), max(x), max(x, {0}, xla::keepdim),
                      max(x, {-1}), min(x, {1}, xla::keepdim), mean(x), mean(x, {1}),
                      sum(x * x, {1}), x - mean(x, {1}, xla::keepdim));
  };
  for (auto [rows, columns] : {std::pair{7, 13}, {1, 1}, {17, 1}, {1, 1000}, {100, 33}, {3, 0}})
    check_modes(all, numbers<float>({rows, columns}));
}

TEST_CASE("reductions of four axes are the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(sum(x, {0, 2}), sum(x, {1, 3}, xla::keepdim), max(x, {2, 3}),
                      sum(x + 1, {0, 1, 2, 3}), sum(x, {3}) * 2);
  };
  check_modes(all, numbers<float>({3, 5, 7, 2}));
  check_modes(all, numbers<std::int32_t>({2, 3, 1, 17}));
  check_modes(all, numbers<std::uint8_t>({2, 3, 1, 17}));
  check_modes([](auto& x) { return std::tuple(sum(x), sum(!x, {0, 2}), sum(x, {1}, xla::keepdim)); },
              numbers<bool>({3, 5, 7, 2}));
}

TEST_CASE("gradients of reductions") {
  const auto x = numbers<double>({3, 4, 2});
  check_gradient([](auto& v) { return sum(v, {1}) * sum(v) + sum(v, {0, 1}); },
                 numbers<double>({3, 2, 4}));
  check_gradient([](auto& v) { return max(v, {1}) * min(v, {1}) + max(v); }, x);
  check_gradient([](auto& v) { return v * mean(v, {-1}, xla::keepdim) + mean(v, {0, 1}); }, x);
}

TEST_CASE("equal largest elements share the gradient") {
  const xla::eager_mode_guard eager;
  auto p = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 3}));
  p.copy_(xla::tensor<float>({{1, 5, 5}, {7, 0, 7}}));
  sum(max(p, {1})).backward();
  check_equal(p.grad(), {2, 3}, std::vector<float>{0, 0.5, 0.5, 0.5, 0, 0.5});
}
