// SPDX-License-Identifier: Apache-2.0
#include "xla/op/where.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::numbers;

namespace {

template <class T>
void check_one(const xla::Tensor<bool, 2>& c, const xla::Tensor<T, 2>& a,
               const xla::Tensor<T, 2>& b) {
  const auto sizes = test::broadcast(c.sizes(), test::broadcast(a.sizes(), b.sizes()));
  std::vector<T> want;
  for (std::int64_t i = 0; i < test::product(sizes); ++i)
    want.push_back(c.data()[test::source_of(i, sizes, c.sizes())]
                       ? a.data()[test::source_of(i, sizes, a.sizes())]
                       : b.data()[test::source_of(i, sizes, b.sizes())]);
  check_equal(where(c, a, b), sizes, want);
}

}  // namespace

TEMPLATE_TEST_CASE("where chooses element by element", "", float, double, std::int32_t,
                   std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_one(numbers<bool>({7, 13}), numbers<T>({7, 13}, 1), numbers<T>({7, 13}, 2));
  check_one(numbers<bool>({7, 1}), numbers<T>({1, 13}, 1), numbers<T>({1, 1}, 2));
  check_one(numbers<bool>({1, 1}), numbers<T>({7, 13}, 1), numbers<T>({7, 1}, 2));
  check_one(numbers<bool>({0, 3}), numbers<T>({1, 3}, 1), numbers<T>({1, 1}, 2));
}

TEST_CASE("where takes special values from the chosen side only") {
  const xla::eager_mode_guard eager;
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const auto c = xla::tensor<bool>({true, false, true, false, true});
  const auto a = xla::tensor<float>({1, nan, -0.f, inf, nan});
  const auto b = xla::tensor<float>({nan, 2, nan, 0, 1});
  check_equal(where(c, a, b), {5}, std::vector<float>{1, 2, -0.f, 0, nan});
  check_equal(where(c, a, 7), {5}, std::vector<float>{1, 7, -0.f, 7, nan});
  check_equal(where(c, 7, b), {5}, std::vector<float>{7, 2, 7, 0, 7});
}

TEST_CASE("where is the same in every mode") {
  auto all = [](auto& c, auto& a, auto& b) {
    return std::tuple(where(c, a, b), where(a > b, a + 1, b * 2), where(!c, a, 0),
                      where(c && a < 0, 3, b));
  };
  check_modes(all, numbers<bool>({7, 13}), numbers<float>({7, 13}, 1), numbers<float>({7, 13}, 2));
  check_modes(all, numbers<bool>({33}), numbers<float>({17, 33}, 1), numbers<float>({33}, 2));
  check_modes(all, numbers<bool>({5}), numbers<std::int32_t>({5}, 1), numbers<std::int32_t>({5}, 2));
}

TEST_CASE("the gradient of where goes to the chosen side") {
  const auto a = numbers<double>({3, 4}, 1);
  const auto b = numbers<double>({4}, 2);
  check_gradient([](auto& x, auto& y) { return where(x > 0.25, x * x, y * 3); }, a, b);
  check_gradient([](auto& x) { return where(x > 0, x, 0) + where(x > 1, 2, x * x); }, a);
}
