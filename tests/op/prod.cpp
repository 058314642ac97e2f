// SPDX-License-Identifier: Apache-2.0
#include "xla/op/prod.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;

namespace {

/// Over axis 1 of (outer, n, inner).
template <class T>
void check_prod(const xla::Tensor<T, 3>& x) {
  const auto outer = x.sizes()[0], n = x.sizes()[1], inner = x.sizes()[2];
  using Total = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  std::vector<Total> want;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      Total product = 1;
      for (std::int64_t k = 0; k < n; ++k) product *= Total(x.data()[(o * n + k) * inner + i]);
      want.push_back(product);
    }
  const double tolerance = sizeof(Total) == 4 ? 1e-5 : 1e-13;
  check_equal(prod(x, {1}), {outer, inner}, want, tolerance, 0);
  check_equal(prod(x, {-2}, xla::keepdim), {outer, 1, inner}, want, tolerance, 0);
}

}  // namespace

TEMPLATE_TEST_CASE("prod multiplies over axes", "", float, double, std::int32_t, std::int64_t,
                   std::uint8_t) {
  using T = TestType;
  using Total = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  const xla::eager_mode_guard eager;
  check_prod(numbers<T>({7, 5, 1}));
  check_prod(numbers<T>({3, 7, 13}));
  check_prod(numbers<T>({1, 1, 1}));
  check_prod(numbers<T>({2, 0, 3}));
  check_prod(numbers<T>({0, 2, 3}));
  const auto x = xla::tensor<T>({{1, 2, 3}, {4, 5, 6}});
  check_equal(prod(x), {}, std::vector<Total>{720});
  check_equal(prod(x, {0, 1}, xla::keepdim), {1, 1}, std::vector<Total>{720});
  CHECK_THROWS_AS(prod(x, {2}), xla::shape_error);
}

TEST_CASE("prod of bool: 1 where all hold") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{1, 0}, {1, 1}}) > 0;
  check_equal(prod(x), {}, std::vector<std::int64_t>{0});
  check_equal(prod(x, {1}), {2}, std::vector<std::int64_t>{0, 1});
}

TEST_CASE("prod of special values") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  check_equal(prod(xla::tensor<float>({{1, nan}, {inf, 0}, {inf, -2}, {-0.f, 3}}), {1}), {4},
              std::vector<float>{nan, nan, -inf, -0.f});
}

TEST_CASE("prod is the same in every mode, with its gradient") {
  auto all = [](auto& x) { return std::tuple(prod(x), prod(x, {0}), prod(x, {1}) + 1); };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, numbers<std::int32_t>({3, 5}));
  test::check_modes(all, numbers<std::uint8_t>({5, 3}));
  test::check_modes(all, numbers<bool>({3, 5}));
  auto backward = [](auto& p) {
    const auto y = prod(p, {1});
    sum(y * y + prod(p, {0}, xla::keepdim)).backward();
    return y;
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({3, 3}));
  p.copy_(xla::tensor<float>({{1, 2, 3}, {0, 2, 3}, {0, 0, 3}}));
  test::check_modes(backward, p);
}

TEST_CASE("the gradient of prod, without zeros, with one and with several") {
  const auto x = xla::tensor<double>({{1, -2, 3, 0.5}, {0, 2, 3, 4}, {0, 5, 0, 2}});
  test::check_gradient([](auto& a) { return prod(a, {1}); }, x);
  test::check_gradient([](auto& a) { return prod(a * 2, {0}, xla::keepdim) * a; }, x);
  test::check_gradient([](auto& a) { return prod(a); }, numbers<double>({2, 3}));
  test::check_gradient([](auto& a) { return prod(a, {0}); }, xla::tensor<double>({0, 3}));
  const auto cube = xla::tensor<double>({{{0, 2}, {3, 0}}, {{1, 2}, {0, 4}}, {{1, 5}, {3, 2}}});
  test::check_gradient([](auto& a) { return prod(a, {0, 2}); }, cube);
  test::check_gradient([](auto& a) { return prod(a, {1, 2}); }, cube);
}

TEST_CASE("the second and third gradients of prod, with several zeros, too") {
  const auto x = xla::tensor<double>({{1, -2, 3, 0.5}, {0, 2, 3, 4}, {0, 5, 0, 2}, {0, 0, 0, 3}});
  const auto first = [](auto f) {
    return [=](auto& a) { return xla::grad(test::weighted_sum(f(a)), a, {.create_graph = true}); };
  };
  const auto rows = [](auto& a) { return prod(a, {1}); };
  test::check_gradient(first(rows), x);
  test::check_gradient(first(first(rows)), x);
  test::check_gradient(first([](auto& a) { return prod(a * a + a, {0}); }), x);
  const auto some = xla::tensor<double>({{0, 2}, {3, 0}, {0, 1}});
  test::check_gradient(first([](auto& a) { return prod(a); }), some);
}

TEST_CASE("the gradient of prod divides nothing: not by zero, infinity or what underflows") {
  const xla::eager_mode_guard eager;
  const float inf = std::numeric_limits<float>::infinity();
  auto p = xla::Parameter<float, 2>::like(xla::zeros({2, 3}));
  p.copy_(xla::tensor<float>({{inf, 2, 3}, {1e-30f, 1e-20f, 2e10f}}));
  sum(prod(p, {1})).backward();
  check_equal(p.grad(), {2, 3}, std::vector<float>{6, inf, inf, 2e-10f, 2e-20f, 0}, 1e-6, 0);
}
