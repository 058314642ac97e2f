// SPDX-License-Identifier: Apache-2.0
#include "xla/op/scan.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;

namespace {

/// f along axis 1 of (outer, n, inner) against a loop that combines, fractions in double, integers
/// in 64 bits.
template <class T, class F, class Combine>
void check_scan(const xla::Tensor<T, 3>& x, F f, Combine combine) {
  const auto outer = x.sizes()[0], n = x.sizes()[1], inner = x.sizes()[2];
  using Total = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  const std::vector<T> all = x.to_vector();
  std::vector<Total> want(all.begin(), all.end());
  std::vector<std::conditional_t<std::is_floating_point_v<T>, double, Total>> wide(all.begin(),
                                                                                   all.end());
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 1; k < n; ++k)
      for (std::int64_t i = 0; i < inner; ++i) {
        const auto at = static_cast<std::size_t>((o * n + k) * inner + i);
        wide[at] = combine(wide[at - static_cast<std::size_t>(inner)], wide[at]);
        want[at] = static_cast<Total>(wide[at]);
      }
  check_equal(f(x, 1), x.sizes(), want);
  check_equal(f(x, -2), x.sizes(), want);
}

template <class T>
void check_scans(const xla::Tensor<T, 3>& x) {
  using wide = std::conditional_t<(std::is_integral_v<T>), std::uint64_t, double>;
  check_scan(
      x, [](auto& a, int axis) { return cumsum(a, axis); },
      [](auto a, auto b) {
        return static_cast<decltype(a)>(static_cast<wide>(a) + static_cast<wide>(b));
      });
  check_scan(
      x, [](auto& a, int axis) { return cumprod(a, axis); },
      [](auto a, auto b) {
        return static_cast<decltype(a)>(static_cast<wide>(a) * static_cast<wide>(b));
      });
}

}  // namespace

TEMPLATE_TEST_CASE("cumsum and cumprod go along an axis", "", float, double, std::int32_t,
                   std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_scans(numbers<T>({7, 13, 1}));
  check_scans(numbers<T>({1, 1000, 1}));
  check_scans(numbers<T>({3, 5, 33}));
  check_scans(numbers<T>({1, 1, 1}));
  check_scans(numbers<T>({2, 0, 3}));
  check_scans(numbers<T>({0, 2, 3}));
  check_scans(numbers<T>({2, 3, 0}));
}

TEST_CASE("cumsum of special values, of bool, and along an axis that does not exist") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  check_equal(cumsum(xla::tensor<float>({-0.f, inf, -inf, 1, nan}), 0), {5},
              std::vector<float>{-0.f, inf, nan, nan, nan});
  check_equal(cumsum(xla::tensor<float>({0, 1, 1, 0}) > 0, 0), {4},
              std::vector<std::int64_t>{0, 1, 2, 2});
  const auto highest = std::numeric_limits<std::int32_t>::max();
  check_equal(cumsum(xla::tensor<std::int32_t>({highest, 1}), 0), {2},
              std::vector<std::int64_t>{highest, std::int64_t(highest) + 1});
  CHECK_THROWS_WITH(cumsum(numbers<float>({2, 3}), 2),
                    test::contains("cumsum: a tensor with 2 axes has no axis 2"));
}

TEST_CASE("cumprod of special values and of bool") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  check_equal(cumprod(xla::tensor<float>({-1, 0.f, 2, inf, 1}), 0), {5},
              std::vector<float>{-1, -0.f, -0.f, nan, nan});
  check_equal(cumprod(xla::tensor<float>({0, 1, 1, 0, 1}) < 1, 0), {5},
              std::vector<std::int64_t>{1, 0, 0, 0, 0});
  const std::int64_t big = std::int64_t{1} << 40;
  check_equal(cumprod(xla::tensor<std::int64_t>({big, big + 1}), -1), {2},
              std::vector<std::int64_t>{big, big});
  CHECK_THROWS_WITH(cumprod(numbers<float>({2, 3}), -3),
                    test::contains("cumprod: a tensor with 2 axes has no axis -3"));
}

TEST_CASE("cumsum and cumprod are the same in every mode, with their gradients") {
  auto all = [](auto& x) {
    return std::tuple(cumsum(x, 0), cumsum(x * 2, 1) + 1, cumsum(cumsum(x, -1), 0), cumprod(x, 0),
                      cumprod(cumprod(x * 2, -1) + 1, 0));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({1, 33}));
  test::check_modes(all, numbers<std::int64_t>({5, 3}));
  test::check_modes(all, numbers<std::uint8_t>({5, 3}));
  auto backward = [](auto& p) {
    const auto y = cumsum(p, 1);
    sum(y * cumsum(y, 0) * cumprod(p, 1)).backward();
    return y;
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({4, 5}));
  p.copy_(numbers<float>({4, 5}));
  test::check_modes(backward, p);
}

TEST_CASE("the gradient of cumsum") {
  const auto x = numbers<double>({3, 4, 2});
  test::check_gradient([](auto& a) { return cumsum(a * a, 1); }, x);
  test::check_gradient([](auto& a) { return cumsum(cumsum(a, 0) * a, -1); }, x);
}

TEST_CASE("the gradients of cumprod, without zeros, with one and with several") {
  const auto x = xla::tensor<double>({{1, -2, 3, 0.5}, {0, 2, 3, 4}, {2, 0, 5, 0}});
  const auto product = [](auto& a) { return cumprod(a, 1); };
  test::check_gradient(product, x);
  test::check_gradient([](auto& a) { return cumprod(a * 2, -2) * a; }, x);
  test::check_gradient([](auto& a) { return cumprod(a, 0); }, xla::tensor<double>({3}));
  test::check_gradient([](auto& a) { return cumprod(a, 0); }, numbers<double>({0, 3}));
  const auto second = [=](auto& a) {
    return xla::grad(test::weighted_sum(product(a)), a, {.create_graph = true});
  };
  test::check_gradient(second, x);
  test::check_gradient(
      [=](auto& a) { return xla::grad(test::weighted_sum(second(a)), a, {.create_graph = true}); },
      x);
}
