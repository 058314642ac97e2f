// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/statistics.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;

namespace {

/// Over axis 1 of (rows, columns).
template <class T>
std::vector<T> row_variances(const xla::Tensor<T, 2>& x, int correction) {
  const auto rows = x.sizes()[0], columns = x.sizes()[1];
  std::vector<T> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x.data() + r * columns;
    double mean = 0, squares = 0;
    for (std::int64_t c = 0; c < columns; ++c)
      mean += static_cast<double>(row[c]) / static_cast<double>(columns);
    for (std::int64_t c = 0; c < columns; ++c) {
      const double d = static_cast<double>(row[c]) - mean;
      squares += d * d;
    }
    out.push_back(static_cast<T>(squares / static_cast<double>(columns - correction)));
  }
  return out;
}

template <class T>
void check_rows(const xla::Tensor<T, 2>& x) {
  const auto rows = x.sizes()[0];
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
  for (int correction : {0, 1}) {
    auto want = row_variances(x, correction);
    check_equal(var(x, {1}, xla::correction(correction)), {rows}, want, tolerance);
    check_equal(var(x, {-1}, xla::keepdim, xla::correction(correction)), {rows, 1}, want,
                tolerance);
    for (T& v : want) v = std::sqrt(v);
    check_equal(xla::std(x, {1}, xla::correction(correction)), {rows}, want, tolerance);
    check_equal(xla::std(x, {1}, xla::keepdim, xla::correction(correction)), {rows, 1}, want,
                tolerance);
  }
  check_equal(var(x, {1}), {rows}, row_variances(x, 1), tolerance);
  check_equal(var(x), {}, row_variances(xla::reshape(x, {1, -1}), 1), tolerance);
  check_equal(var(x, {0, 1}, xla::correction(0)), {}, row_variances(xla::reshape(x, {1, -1}), 0),
              tolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("var and std over axes", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_rows(numbers<T>({7, 13}));
  check_rows(numbers<T>({33, 2}));
  check_rows(numbers<T>({2, 1000}));
  const auto x = xla::tensor<T>({{1, 5, 3}, {2, 2, 2}});
  check_equal(var(x, {0}), {3}, std::vector<T>{T(0.5), T(4.5), T(0.5)}, 1e-6);
  CHECK(xla::std(x).item() == Approx(1.3784));
  CHECK_THROWS_WITH(var(x, {2}), test::contains("var: axis 2"));
  CHECK_THROWS_WITH(xla::std(x, {-3}), test::contains("std: axis -3"));
}

TEST_CASE("var and std of too few elements are NaN") {
  const xla::eager_mode_guard eager;
  CHECK(std::isnan(var(xla::ones({1})).item()));
  CHECK(std::isnan(xla::std(xla::ones<double>({1})).item()));
  CHECK(std::isnan(var(xla::ones({0, 3})).item()));
  CHECK(std::isnan(var(xla::ones({2}), xla::correction(5)).item()));
  CHECK(var(xla::ones({1}), xla::correction(0)).item() == 0);
  CHECK(xla::std(xla::full({5}, 3.f)).item() == 0);
}

TEST_CASE("var and std are the same in every mode, with their gradients") {
  auto all = [](auto& x) {
    return std::tuple(var(x), xla::std(x, {0}), var(x, {1}, xla::keepdim, xla::correction(0)) + x);
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  auto backward = [](auto& p) {
    const auto y = xla::std(p, {1});
    (sum(y * y) + var(p)).backward();
    return y;
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({4, 5}));
  p.copy_(numbers<float>({4, 5}));
  test::check_modes(backward, p);
}

TEST_CASE("the gradients of var and std; of std where it is 0") {
  const auto x = numbers<double>({3, 5});
  test::check_gradient([](auto& a) { return var(a * a, {1}); }, x);
  test::check_gradient([](auto& a) { return xla::std(a * a, {0}, xla::correction(0)); }, x);
  test::check_gradient([](auto& a) { return xla::std(a); }, x);
  const xla::eager_mode_guard eager;
  auto flat = xla::full<float>({4}, 2);
  flat.requires_grad_();
  xla::std(flat).backward();
  check_equal(flat.grad(), {4}, std::vector<float>(4, 0.f));
}
