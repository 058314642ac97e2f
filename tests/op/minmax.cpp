// SPDX-License-Identifier: Apache-2.0
#include "xla/op/minmax.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/abs.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::map_each;
using test::map_pairs;
using test::numbers;

namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}

template <class T, int A, int B>
void check_both(const xla::Tensor<T, A>& a, const xla::Tensor<T, B>& b) {
  const auto sizes = test::broadcast(a.sizes(), b.sizes());
  const auto most = map_pairs<T>(a, b, [](T x, T y) {
    return is_nan(x) ? x : is_nan(y) ? y : x < y ? y : x;
  });
  const auto least = map_pairs<T>(a, b, [](T x, T y) {
    return is_nan(x) ? x : is_nan(y) ? y : y < x ? y : x;
  });
  check_equal(maximum(a, b), sizes, most);
  check_equal(minimum(a, b), sizes, least);
  check_equal(max(a, b), sizes, most);
  check_equal(min(a, b), sizes, least);
}

}  // namespace

TEMPLATE_TEST_CASE("maximum and minimum; NaN when either is", "", float, double, std::int32_t,
                   std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_both(numbers<T>({7, 13}, 1), numbers<T>({7, 13}, 2));
  check_both(numbers<T>({7, 1}, 1), numbers<T>({1, 13}, 2));
  check_both(numbers<T>({0, 2}, 1), numbers<T>({1, 2}, 2));
  std::vector<T> a, b;
  test::special_pairs(a, b);
  check_both(xla::tensor(a), xla::tensor(b));
  check_equal(maximum(numbers<T>({33}), 1), {33},
              map_each<T>(numbers<T>({33}), [](T v) { return v < 1 ? T(1) : v; }));
  check_equal(minimum(1, numbers<T>({33})), minimum(numbers<T>({33}), 1));
  check_equal(maximum(1, numbers<T>({33})), maximum(numbers<T>({33}), 1));
  if constexpr (std::is_signed_v<T>)
    check_equal(abs(numbers<T>({7, 13})), {7, 13},
                map_each<T>(numbers<T>({7, 13}), [](T v) { return v < 0 ? T(-v) : v; }));
}

TEST_CASE("abs of special values") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  check_equal(abs(xla::tensor<float>({nan, inf, -inf, 0, -0.f, -2})), {6},
              std::vector<float>{nan, inf, inf, 0, 0, 2});
}

TEST_CASE("maximum, minimum and abs are the same in every mode") {
  auto all = [](auto& a, auto& b) {
    return std::tuple(maximum(a, b), minimum(a, b), abs(a), maximum(b, a), minimum(b, a),
                      maximum(minimum(a, 1), -1) * abs(b));
  };
  check_modes(all, numbers<float>({7, 13}, 1), numbers<float>({13}, 2));
  check_modes(all, numbers<std::int32_t>({7, 13}, 1), numbers<std::int32_t>({7, 13}, 2));
  std::vector<float> a, b;
  test::special_pairs(a, b);
  check_modes(all, xla::tensor(a), xla::tensor(b));
}

TEST_CASE("gradients of maximum, minimum and abs") {
  check_gradient([](auto& x, auto& y) { return maximum(x, y) * 2 + minimum(x, y) * abs(x); },
                 numbers<double>({3, 5}, 1), numbers<double>({3, 5}, 2));
}

TEST_CASE("ties share the gradient, and abs has none at 0") {
  const xla::eager_mode_guard eager;
  auto a = xla::Parameter<double, 1>::like(xla::tensor<double>({1, 2, 0}));
  auto b = xla::Parameter<double, 1>::like(a);
  a.copy_(xla::tensor<double>({1, 2, 0}));
  b.copy_(xla::tensor<double>({1, 3, -1}));
  sum(maximum(a, b)).backward();
  check_equal(a.grad(), {3}, std::vector<double>{0.5, 0, 1});
  check_equal(b.grad(), {3}, std::vector<double>{0.5, 1, 0});
  a.zero_grad();
  sum(abs(a)).backward();
  check_equal(a.grad(), {3}, std::vector<double>{1, 1, 0});
}
