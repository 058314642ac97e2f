// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/pad.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/repeat.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

namespace {

/// x with before and after elements of value around it, by a plain loop; negative ones cut.
template <class T>
std::vector<T> padded(const xla::Tensor<T, 2>& x, const std::int64_t (&by)[2][2], T value) {
  const std::int64_t rows = x.size(0), columns = x.size(1);
  std::vector<T> out;
  for (std::int64_t r = -by[0][0]; r < rows + by[0][1]; ++r)
    for (std::int64_t c = -by[1][0]; c < columns + by[1][1]; ++c) {
      const bool inside = r >= 0 && r < rows && c >= 0 && c < columns;
      out.push_back(inside ? x.data()[r * columns + c] : value);
    }
  return out;
}

/// Element (r, c) of the result is element (r mod rows, c mod columns) of x, moved.
template <class T>
std::vector<T> wrapped(const xla::Tensor<T, 2>& x, std::int64_t rows, std::int64_t columns,
                       std::int64_t down = 0, std::int64_t right = 0) {
  const std::int64_t n = x.size(0), m = x.size(1);
  std::vector<T> out;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t from = ((r - down) % n + n) % n, at = ((c - right) % m + m) % m;
      out.push_back(x.data()[from * m + at]);
    }
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("pad puts elements around a tensor, or cuts them off", "", float, double,
                   std::int32_t, bool) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto x = numbers<T>({7, 13});
  check_equal(pad(x, {{1, 2}, {0, 3}}, T(1)), {10, 16}, padded(x, {{1, 2}, {0, 3}}, T(1)));
  check_equal(pad(x, {{0, 0}, {2, 0}}), {7, 15}, padded(x, {{0, 0}, {2, 0}}, T(0)));
  check_equal(pad(x, {{-1, 1}, {3, -5}}, T(1)), {7, 11}, padded(x, {{-1, 1}, {3, -5}}, T(1)));
  check_equal(pad(x, {{0, 0}, {0, 0}}), x);
  check_equal(pad(numbers<T>({0}), {{1, 2}}, T(1)), {3}, std::vector<T>(3, T(1)));
  CHECK_THROWS_AS(pad(x, {{-4, -4}, {0, 0}}), xla::shape_error);
}

TEMPLATE_TEST_CASE("roll moves elements around", "", float, std::int64_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto x = numbers<T>({7, 13});
  for (std::int64_t by : {0, 1, 5, 7, 20, -1, -6, -30}) {
    check_equal(roll(x, by, 0), {7, 13}, wrapped(x, 7, 13, by, 0));
    check_equal(roll(x, by, -1), {7, 13}, wrapped(x, 7, 13, 0, by));
  }
  check_equal(roll(x, {2, -3}, {0, 1}), {7, 13}, wrapped(x, 7, 13, 2, -3));
  check_equal(roll(numbers<T>({0}), 3, 0), {0}, {});
  CHECK_THROWS_AS(roll(x, 1, 2), xla::shape_error);
}

TEMPLATE_TEST_CASE("repeat, tile and repeat_interleave", "", float, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto x = numbers<T>({3, 5});
  check_equal(repeat(x, {2, 3}), {6, 15}, wrapped(x, 6, 15));
  check_equal(repeat(x, {1, 1}), x);
  check_equal(repeat(x, {0, 1}), {0, 5}, {});
  check_equal(reshape(repeat(x, {4, 2, 3}), {-1, 15}), {24, 15}, wrapped(x, 24, 15));
  check_equal(tile(x, {2}), {3, 10}, wrapped(x, 3, 10));
  check_equal(tile(x, {2, 1}), {6, 5}, wrapped(x, 6, 5));
  check_equal(reshape(tile(x, {4, 2, 3}), {24, 15}), {24, 15}, wrapped(x, 24, 15));
  const auto v = xla::tensor<T>({{1, 2}, {3, 4}});
  check_equal(repeat_interleave(v, 2, 1), {2, 4}, std::vector<T>{1, 1, 2, 2, 3, 3, 4, 4});
  check_equal(repeat_interleave(v, 2, -2), {4, 2}, std::vector<T>{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK_THROWS_AS(repeat(x, {-1, 1}), xla::shape_error);
  CHECK_THROWS_AS(repeat_interleave(x, 2, 2), xla::shape_error);
}

TEST_CASE("padding, rolling and repeating are the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(pad(x, {{1, 2}, {0, 3}}, 0.5) * 2, pad(x, {{-1, 0}, {x.size(0), 0}}),
                      roll(x, 1, 0) - x, roll(x, {-1, 1}, {0, 1}), repeat(x, {2, 3}) + 1,
                      tile(x, {2}), repeat(x, {x.size(1), 1, 2}), repeat_interleave(x, 3, 0),
                      pad(xla::ones<float>({2, 2}), {{1, 0}, {0, 1}}));
  };
  check_modes(all, numbers<float>({7, 13}));
  check_modes(all, numbers<float>({1, 1}));
}

TEST_CASE("the gradients of pad, roll and repeat") {
  const auto x = numbers<double>({3, 4});
  test::check_gradient([](auto& a) { return pad(a * a, {{1, 0}, {-1, 2}}, 3); }, x);
  test::check_gradient([](auto& a) { return roll(a, {1, -1}, {0, 1}) * a; }, x);
  test::check_gradient(
      [](auto& a) {
        const auto y = repeat(a, {2, 1, 3});
        return y * y;
      },
      x);
}
