// SPDX-License-Identifier: Apache-2.0
#include "xla/op/scan.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;

namespace {

/// Along axis 1 of (outer, n, inner).
template <class T>
void check_cumsum(const xla::Tensor<T, 3>& x) {
  const auto outer = x.sizes()[0], n = x.sizes()[1], inner = x.sizes()[2];
  std::vector<T> want = x.to_vector();
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 1; k < n; ++k)
      for (std::int64_t i = 0; i < inner; ++i) {
        const auto at = static_cast<std::size_t>((o * n + k) * inner + i);
        want[at] = static_cast<T>(want[at - static_cast<std::size_t>(inner)] + want[at]);
      }
  check_equal(cumsum(x, 1), x.sizes(), want);
  check_equal(cumsum(x, -2), x.sizes(), want);
}

}  // namespace

TEMPLATE_TEST_CASE("cumsum adds up along an axis", "", float, double, std::int32_t, std::int64_t,
                   std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_cumsum(numbers<T>({7, 13, 1}));
  check_cumsum(numbers<T>({1, 1000, 1}));
  check_cumsum(numbers<T>({3, 5, 33}));
  check_cumsum(numbers<T>({1, 1, 1}));
  check_cumsum(numbers<T>({2, 0, 3}));
  check_cumsum(numbers<T>({0, 2, 3}));
  check_cumsum(numbers<T>({2, 3, 0}));
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
              std::vector<std::int32_t>{highest, std::numeric_limits<std::int32_t>::min()});
  CHECK_THROWS_WITH(cumsum(numbers<float>({2, 3}), 2),
                    test::contains("cumsum: a tensor with 2 axes has no axis 2"));
}

TEST_CASE("cumsum is the same in every mode, with its gradient") {
  auto all = [](auto& x) {
    return std::tuple(cumsum(x, 0), cumsum(x * 2, 1) + 1, cumsum(cumsum(x, -1), 0));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({1, 33}));
  test::check_modes(all, numbers<std::int64_t>({5, 3}));
  auto backward = [](auto& p) {
    const auto y = cumsum(p, 1);
    sum(y * cumsum(y, 0)).backward();
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
