// SPDX-License-Identifier: Apache-2.0
#include "xla/op/row.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

TEST_CASE("rows of tensors are read by index") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  check_equal(x[0], {3}, std::vector<float>{1, 2, 3});
  check_equal(x[-1], {3}, std::vector<float>{4, 5, 6});
  const auto number = x[1][2];
  CHECK(number.item() == 6);
  CHECK(relu(x)[1][0].item() == 4);
  auto y = x;
  CHECK(y[1][0].item() == 4);
  const xla::Tensor<float, 1> row = y[1];
  check_equal(row, {3}, std::vector<float>{4, 5, 6});
  check_equal(y[0] * y[1] - sum(y[0]), {3}, std::vector<float>{-2, 4, 12});
  CHECK_THROWS_AS(x[2], xla::shape_error);
  CHECK_THROWS_AS(x[-3], xla::shape_error);
  CHECK_THROWS_AS(y[0][3].item(), xla::shape_error);
}

TEST_CASE("partial assignment writes into the tensor, and into no other") {
  const xla::eager_mode_guard eager;
  auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  const auto old = x;
  x[0][0] = 0;
  check_equal(x, {2, 3}, std::vector<float>{0, 2, 3, 4, 5, 6});
  x[1] = xla::tensor<float>({7, 8, 9});
  check_equal(x, {2, 3}, std::vector<float>{0, 2, 3, 7, 8, 9});
  x[0] = 5;
  check_equal(x, {2, 3}, std::vector<float>{5, 5, 5, 7, 8, 9});
  x[0] = x[1];
  check_equal(x, {2, 3}, std::vector<float>{7, 8, 9, 7, 8, 9});
  x[-1][-1] = -1;
  check_equal(x, {2, 3}, std::vector<float>{7, 8, 9, 7, 8, -1});
  check_equal(old, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  auto deep = numbers<std::int64_t>({2, 3, 4});
  auto v = deep.to_vector();
  deep[1][2][3] = 99;
  v[23] = 99;
  check_equal(deep, {2, 3, 4}, v);
  CHECK_THROWS_AS(x[2] = 0, xla::shape_error);
  CHECK_THROWS_AS(x[0] = numbers<float>({2}), xla::shape_error);
}

TEST_CASE("in-place forms of a row write into the tensor") {
  const xla::eager_mode_guard eager;
  auto x = xla::tensor<float>({{1, 2}, {3, 4}});
  x[0] += xla::tensor<float>({10, 10});
  check_equal(x, {2, 2}, std::vector<float>{11, 12, 3, 4});
  x[1] *= 2;
  check_equal(x, {2, 2}, std::vector<float>{11, 12, 6, 8});
  x[0][1] -= 5;
  check_equal(x, {2, 2}, std::vector<float>{11, 7, 6, 8});
  x[0].copy_(x[1]);
  check_equal(x, {2, 2}, std::vector<float>{6, 8, 6, 8});
  x[1].zero_();
  check_equal(x, {2, 2}, std::vector<float>{6, 8, 0, 0});
}

TEST_CASE("partial assignment to a parameter writes its cell") {
  auto step = [](auto& w, auto& x) {
    w[0][0] = 0;
    auto loss = sum(matmul(x, w));
    loss.backward();
    return loss;
  };
  const xla::eager_mode_guard eager;
  auto p = xla::Parameter<float, 2>::like(numbers<float>({4, 3}));
  p.copy_(numbers<float>({4, 3}));
  check_modes(step, p, numbers<float>({2, 4}));
  p[1] = xla::ones<float>({3});
  CHECK(p.requires_grad());
  sum(p * 2).backward();
  check_equal(p.grad(), {4, 3}, std::vector<float>(12, 2.f));
}

TEST_CASE("partial assignment is seen by what comes later") {
  const xla::eager_mode_guard eager;
  auto x = xla::tensor<float>({{1, 2}, {3, 4}});
  const auto before = matmul(x, x);
  x[0][0] = 0;
  check_equal(matmul(x, x), {2, 2}, std::vector<float>{6, 8, 12, 22});
  check_equal(before, {2, 2}, std::vector<float>{7, 10, 15, 22});
}

TEST_CASE("rows are the same in every mode") {
  auto all = [](auto& x, auto& w) {
    auto y = x;
    const auto before = matmul(y, w);
    y[0][0] = 0;
    y[1] = y[2] * 2;
    const xla::Tensor<float, 1> r = y[1];
    x[2] = 1;
    return std::tuple(before, matmul(y, w), r + 1, y, x * 2);
  };
  check_modes(all, numbers<float>({3, 4}, 1), numbers<float>({4, 2}, 2));
  check_modes(all, numbers<float>({33, 17}, 1), numbers<float>({17, 13}, 2));
}

TEST_CASE("gradients of rows and of partial assignment") {
  test::check_gradient([](const auto& x) { return x[0] * x[1] + x[-1]; }, numbers<double>({3, 4}));
  test::check_gradient(
      [](const auto& x, const auto& v) {
        xla::Tensor<double, 2> y = x * 2;
        y[1] = v * v;
        y[0][2] = 5;
        return y * y;
      },
      numbers<double>({3, 4}, 1), numbers<double>({4}, 2));
}
