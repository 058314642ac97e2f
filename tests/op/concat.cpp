// SPDX-License-Identifier: Apache-2.0
#include "xla/op/concat.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/split.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

namespace {

/// Matrices side by side, by a plain loop.
template <class T>
std::vector<T> beside(const std::vector<xla::Tensor<T, 2>>& parts) {
  std::vector<T> out;
  const std::int64_t rows = parts[0].size(0);
  for (std::int64_t r = 0; r < rows; ++r)
    for (const auto& p : parts) {
      const std::int64_t n = p.size(1);
      out.insert(out.end(), p.data() + r * n, p.data() + (r + 1) * n);
    }
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("cat joins tensors along an axis", "", float, double, std::int32_t, std::uint8_t,
                   bool) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto a = numbers<T>({7, 13}, 1), b = numbers<T>({7, 1}, 2), c = numbers<T>({7, 5}, 3),
             none = numbers<T>({7, 0});
  check_equal(xla::cat({a, b}, 1), {7, 14}, beside<T>({a, b}));
  check_equal(xla::cat({a, b, c}, -1), {7, 19}, beside<T>({a, b, c}));
  check_equal(xla::cat({c, none, b, a}, 1), {7, 19}, beside<T>({c, b, a}));
  check_equal(xla::concat({b, c, a, a, b}, 1), {7, 33}, beside<T>({b, c, a, a, b}));
  check_equal(xla::cat(std::array{a, b, c, b, a, c, b}, 1), {7, 39},
              beside<T>({a, b, c, b, a, c, b}));
  check_equal(xla::cat<1>(a, b, c), xla::cat({a, b, c}, 1));
  check_equal(xla::cat({a}, 0), a);
  check_equal(transpose(xla::cat({transpose(a), transpose(c)})), xla::cat({a, c}, 1));
  const auto deep = numbers<T>({2, 3, 4}, 1), thin = numbers<T>({2, 1, 4}, 2);
  const auto joined = xla::cat({deep, thin, deep}, 1);
  check_equal(slice(joined, 1, 0, 3), deep);
  check_equal(slice(joined, 1, 3, 4), thin);
  check_equal(slice(joined, 1, 4), deep);
}

TEST_CASE("stack joins along a new axis") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<float>({3, 5}, 1), b = numbers<float>({3, 5}, 2);
  CHECK(xla::stack({a, b, a, b}, 1).sizes() == test::sizes_t{3, 4, 5});
  for (int axis : {0, 1, 2, -1, -3}) {
    check_equal(select(xla::stack({a, b}, axis), axis, 0), a);
    check_equal(select(xla::stack(std::array{a, b}, axis), axis, 1), b);
  }
  check_equal(xla::stack<1>(a, b, a), xla::stack({a, b, a}, 1));
  const auto one = xla::tensor(1.f), two = xla::tensor(2.f);
  check_equal(xla::stack({one, two}), {2}, std::vector<float>{1, 2});
}

TEST_CASE("split and chunk take a tensor apart") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 12});
  const auto [q, k, v] = xla::chunk<3>(x, -1);
  check_equal(q, slice(x, 1, 0, 4));
  check_equal(v, slice(x, 1, 8));
  check_equal(xla::cat({q, k, v}, 1), x);
  const auto three = xla::chunk<3>(x);
  check_equal(three[1], slice(x, 0, 3, 6));
  check_equal(three[2], slice(x, 0, 6));
  CHECK(xla::chunk<4>(numbers<float>({5}))[3].numel() == 0);
  check_equal(xla::split<2>(x, 1)[1], slice(x, 1, 6));
  const auto parts = split(x, {1, 0, 6});
  check_equal(parts[0], slice(x, 0, 0, 1));
  check_equal(parts[1], {0, 12}, {});
  check_equal(parts[2], slice(x, 0, 1));
}

TEST_CASE("the errors of joining and splitting") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 3}), y = numbers<float>({7, 2});
  CHECK_THROWS_WITH(xla::cat({x, y}), test::contains("concat: shapes (7, 3) and (7, 2)"));
  CHECK_THROWS_AS(xla::cat({x, y}, 2), xla::shape_error);
  CHECK_THROWS_AS(xla::stack({x, y}), xla::shape_error);
  CHECK_THROWS_AS(xla::stack({x, x}, 3), xla::shape_error);
  CHECK_THROWS_WITH(xla::split<2>(x, 0), test::contains("does not divide into 2 equal parts"));
  CHECK_THROWS_WITH(split(x, {3, 3}), test::contains("do not add up"));
  CHECK_THROWS_AS(split(x, {8, -1}), xla::shape_error);
}

TEST_CASE("joining and splitting are the same in every mode") {
  auto all = [](auto& x, auto& y) {
    const auto both = xla::cat({x, y * 2}, 0);
    const auto [a, b] = xla::chunk<2>(x, 1);
    const auto parts = split(both, {x.size(0), y.size(0)});
    return std::tuple(
        both, xla::cat({x, y, x, y}, 0) + 1, xla::stack({a, b}, 1), a * b, xla::cat({b, a}, 1) - x,
        parts[1] + y, xla::cat({x, xla::zeros<float>({1, 1}) + slice(x, 0, 0, 1)}, 0),
        sum(both, {0}), xla::split<2>(x, 1)[1], xla::cat({x, x}, 1) + xla::cat({x, x}, 1));
  };
  check_modes(all, numbers<float>({7, 6}, 1), numbers<float>({3, 6}, 2));
  check_modes(all, numbers<float>({1, 2}, 1), numbers<float>({2, 2}, 2));
}

TEST_CASE("parts have to be equal when the size is known at run time only") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return xla::chunk<3>(x, 0)[2] * 2; });
  auto six = numbers<float>({6}), seven = numbers<float>({7});
  check_equal(f(six), slice(six, 0, 4) * 2);
  CHECK_THROWS_WITH(f(seven), test::contains("chunk"));
}

TEST_CASE("the gradients of cat, stack and chunk") {
  const auto a = numbers<double>({2, 3}, 1), b = numbers<double>({2, 2}, 2);
  test::check_gradient(
      [](auto& x, auto& y) {
        const auto z = xla::cat({x, y, x * x, y}, 1);
        return z * z;
      },
      a, b);
  test::check_gradient(
      [](auto& x, auto& y) {
        const auto s = xla::stack({select(x, 1, 0), select(y, 1, 1)}, 1);
        return s * s * s;
      },
      a, b);
  test::check_gradient(
      [](auto& x) {
        const auto [p, q, r] = xla::chunk<3>(x, 1);
        return p * q + r;
      },
      a);
}

TEST_CASE("unbind is every slice along an axis, the same in every mode, with gradients") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({2, 3, 4});
  const auto slices = xla::unbind<3>(x, -2);
  for (int i = 0; i < 3; ++i) check_equal(slices[static_cast<std::size_t>(i)], select(x, 1, i));
  CHECK(xla::unbind<2>(numbers<float>({2}))[1].item() == numbers<float>({2}).to_vector()[1]);
  CHECK_THROWS_WITH(xla::unbind<2>(x, 1), test::contains("unbind: axis 1 of (2, 3, 4)"));
  CHECK_THROWS_AS(xla::unbind<2>(x, 3), xla::shape_error);
  auto all = [](auto& v) {
    const auto [a, b, c] = xla::unbind<3>(v, 1);
    return a * b + c * c * a;
  };
  test::check_modes(all, numbers<float>({5, 3, 7}));
  test::check_gradient(all, x);
  auto three = xla::compile(all);
  auto four = numbers<float>({5, 4, 7});
  CHECK_THROWS_AS(three(four), xla::shape_error);
}
