// SPDX-License-Identifier: Apache-2.0
#include "xla/op/cast.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

namespace {

template <class To, class From>
void check_cast() {
  const auto x = numbers<From>({7, 13});
  check_equal(xla::cast<To>(x), {7, 13}, test::map_each<To>(x, [](From v) { return To(v); }));
}

template <class From>
void check_from() {
  check_cast<float, From>();
  check_cast<double, From>();
  check_cast<std::int32_t, From>();
  check_cast<std::int64_t, From>();
  check_cast<bool, From>();
  if constexpr (!std::is_signed_v<From>) check_cast<std::uint8_t, From>();
}

}  // namespace

TEST_CASE("cast converts as static_cast does") {
  const xla::eager_mode_guard eager;
  check_from<float>();
  check_from<double>();
  check_from<std::int32_t>();
  check_from<std::int64_t>();
  check_from<std::uint8_t>();
  check_from<bool>();
  check_equal(xla::cast<float>(numbers<std::int32_t>({0})), {0}, {});
  check_equal(xla::cast<std::uint8_t>(xla::tensor<std::int32_t>({-1, 256, 300})), {3},
              std::vector<std::uint8_t>{255, 0, 44});
}

TEST_CASE("cast to an integer of what it cannot hold gives the nearest it can, of NaN 0") {
  const xla::eager_mode_guard eager;
  const float inf = std::numeric_limits<float>::infinity();
  const auto x = xla::tensor<float>({std::nanf(""), inf, -inf, 3e9f, -3e9f, -0.9f, 2.9f});
  using i32 = std::numeric_limits<std::int32_t>;
  using i64 = std::numeric_limits<std::int64_t>;
  check_equal(xla::cast<std::int32_t>(x), {7},
              {0, i32::max(), i32::min(), i32::max(), i32::min(), 0, 2});
  check_equal(xla::cast<std::int64_t>(x), {7},
              {0, i64::max(), i64::min(), 3000000000, -3000000000, 0, 2});
  check_equal(xla::cast<std::uint8_t>(x), {7}, {0, 255, 0, 255, 0, 0, 2});
  check_equal(xla::cast<bool>(x), {7}, {true, true, true, true, true, true, true});
  check_equal(xla::cast<bool>(xla::tensor<float>({0, -0.f, 1e-45f})), {3}, {false, false, true});
}

TEST_CASE("cast is the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(xla::cast<std::int32_t>(x * 2), xla::cast<double>(x) + 1,
                      xla::cast<bool>(x) && x > 1, xla::cast<float>(x > 0) * 3);
  };
  check_modes(all, numbers<float>({7, 13}));
  check_modes(all, numbers<std::int64_t>({17, 33}));
}

TEST_CASE("the gradient of a cast between float and double") {
  test::check_gradient([](auto& x) { return x * xla::cast<double>(xla::cast<bool>(x)); },
                       numbers<double>({3, 4}));
  const xla::eager_mode_guard eager;
  auto p = xla::Parameter<float, 1>::like(numbers<float>({3}));
  sum(xla::cast<double>(p) * xla::tensor<double>({1, 2, 3})).backward();
  check_equal(p.grad(), {3}, std::vector<float>{1, 2, 3});
}
