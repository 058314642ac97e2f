// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/linalg.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;

TEST_CASE("products by PyTorch's names") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<double>({3, 5}), b = numbers<double>({5, 2}, 1);
  const auto x = numbers<double>({5}, 2), y = numbers<double>({5}, 3);
  check_equal(mm(a, b), matmul(a, b));
  check_equal(mv(a, x), matmul(a, x));
  CHECK(dot(x, y).item() == sum(x * y).item());
  check_equal(outer(x, y), {5, 5}, matmul(unsqueeze(x, 1), unsqueeze(y, 0)).to_vector());
  const auto p = numbers<double>({4, 3, 5}), q = numbers<double>({4, 5, 2}, 1);
  check_equal(bmm(p, q), matmul(p, q));
  const auto c = numbers<double>({2}, 4);
  check_equal(addmm(c, a, b), c + matmul(a, b));
  check_equal(addmm(c, a, b, {.beta = 2, .alpha = -1}), c * 2.0 + matmul(a, b) * -1.0);
  check_equal(addmm(c / 0.0, a, b, {.beta = 0}), matmul(a, b));
  CHECK_THROWS_WITH(dot(x, c), test::contains("dot: vectors of shape (5,) and (2,)"));
  CHECK_THROWS_AS(mm(a, a), xla::shape_error);
}

TEST_CASE("products are the same in every mode, with their gradients") {
  auto all = [](auto& p, auto& x) {
    const auto y = addmm(x, p, p, {.beta = 0.5}), z = outer(x, mv(p, x));
    (sum(y * z) + dot(x, mv(p, x))).backward();
    return std::tuple(y, z, mm(p, y), bmm(unsqueeze(p, 0), unsqueeze(z, 0)));
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({5, 5}));
  p.copy_(numbers<float>({5, 5}));
  test::check_modes(all, p, numbers<float>({5}));
  test::check_gradient(
      [](auto& a, auto& b) { return addmm(b, a, a, {.beta = 2}) + outer(mv(a, b), b) * dot(b, b); },
      numbers<double>({3, 3}), numbers<double>({3}));
}
