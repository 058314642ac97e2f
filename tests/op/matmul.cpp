// SPDX-License-Identifier: Apache-2.0
#include "xla/op/matmul.hpp"

#include <limits>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/ragged_dot.hpp"
#include "xla/op/relu.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::numbers;

namespace {

/// (m, k) times (k, n) by three loops, in double for float.
template <class T>
std::vector<T> times(const T* a, const T* b, std::int64_t m, std::int64_t n, std::int64_t k,
                     bool b_transposed = false) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;
  std::vector<T> out;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      Sum s = 0;
      for (std::int64_t p = 0; p < k; ++p)
        s += Sum(a[i * k + p]) * Sum(b_transposed ? b[j * k + p] : b[p * n + j]);
      out.push_back(static_cast<T>(s));
    }
  return out;
}

template <class T>
void check_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto a = numbers<T>({m, k}, 1), b = numbers<T>({k, n}, 2), bt = numbers<T>({n, k}, 3);
  const double eps = std::is_same_v<T, float> ? 1e-7 : 1e-16;
  const double tolerance = eps * 64 * std::sqrt(static_cast<double>(k));
  INFO(m << " x " << n << " x " << k);
  check_equal(matmul(a, b), {m, n}, times(a.data(), b.data(), m, n, k), tolerance);
  check_equal(linear(a, bt), {m, n}, times(a.data(), bt.data(), m, n, k, true), tolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("products of matrices", "", float, double, std::int32_t) {
  const xla::eager_mode_guard eager;
  check_product<TestType>(7, 13, 5);
  check_product<TestType>(1, 1, 1);
  check_product<TestType>(1, 1000, 3);
  check_product<TestType>(33, 1, 17);
  check_product<TestType>(64, 48, 100);
  check_product<TestType>(17, 33, 1000);
  check_product<TestType>(0, 3, 4);
  check_product<TestType>(3, 0, 4);
  check_product<TestType>(3, 4, 0);
}

TEST_CASE("products with vectors and batches") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<float>({7, 5}, 1), b = numbers<float>({5, 13}, 2);
  const auto v = numbers<float>({5}, 3);
  check_equal(matmul(v, b), {13}, times(v.data(), b.data(), 1, 13, 5), 1e-5);
  check_equal(matmul(a, v), {7}, times(a.data(), v.data(), 7, 1, 5), 1e-5);
  const auto x = numbers<float>({3, 7, 5}, 4);
  check_equal(matmul(x, b), {3, 7, 13}, times(x.data(), b.data(), 21, 13, 5), 1e-5);
  const auto y = numbers<float>({3, 5, 2}, 5);
  std::vector<float> want;
  for (int i = 0; i < 3; ++i)
    for (float f : times(x.data() + i * 35, y.data() + i * 10, 7, 2, 5)) want.push_back(f);
  check_equal(matmul(x, y), {3, 7, 2}, want, 1e-5);
  // Leading axes broadcast: (2, 1, 7, 5) and (3, 5, 2).
  const auto z = numbers<float>({2, 1, 7, 5}, 6);
  want.clear();
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 3; ++i)
      for (float f : times(z.data() + j * 35, y.data() + i * 10, 7, 2, 5)) want.push_back(f);
  check_equal(matmul(z, y), {2, 3, 7, 2}, want, 1e-5);
  // A matrix times a batch.
  want.clear();
  for (int i = 0; i < 3; ++i)
    for (float f : times(a.data(), y.data() + i * 10, 7, 2, 5)) want.push_back(f);
  check_equal(matmul(a, y), {3, 7, 2}, want, 1e-5);
  const auto w = numbers<float>({4, 5}, 7);
  const auto bias = numbers<float>({4}, 8);
  auto lin = times(x.data(), w.data(), 21, 4, 5, true);
  for (std::size_t i = 0; i < lin.size(); ++i) lin[i] += bias.data()[i % 4];
  check_equal(linear(x, w, bias), {3, 7, 4}, lin, 1e-5);
}

TEST_CASE("a product refuses inner sizes that differ, with both shapes") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH(matmul(numbers<float>({2, 3}), numbers<float>({4, 5})),
                    test::contains("(2, 3)") && test::contains("(4, 5)"));
  CHECK_THROWS_AS(matmul(numbers<float>({2, 2, 3}), numbers<float>({3, 3, 5})), xla::shape_error);
  CHECK_THROWS_AS(matmul(numbers<float>({3}), numbers<float>({2, 3})), xla::shape_error);
}

TEST_CASE("products are the same in every mode") {
  auto all = [](auto& a, auto& b, auto& w, auto& c) {
    return std::tuple(matmul(a, b), linear(a, w, c), relu(matmul(a * 2, b)), matmul(c, w),
                      matmul(transpose(b), transpose(a)) + 1);
  };
  check_modes(all, numbers<float>({7, 5}, 1), numbers<float>({5, 13}, 2), numbers<float>({3, 5}, 3),
              numbers<float>({3}, 4));
  check_modes(all, numbers<float>({33, 100}, 1), numbers<float>({100, 17}, 2),
              numbers<float>({64, 100}, 3), numbers<float>({64}, 4));
  check_modes(all, numbers<float>({0, 4}, 1), numbers<float>({4, 3}, 2), numbers<float>({2, 4}, 3),
              numbers<float>({2}, 4));
}

TEST_CASE("products of batches are the same in every mode") {
  auto all = [](auto& a, auto& b, auto& m) {
    return std::tuple(matmul(a, b), matmul(a, transpose(a)), matmul(m, b), matmul(a, m));
  };
  check_modes(all, numbers<float>({3, 7, 5}, 1), numbers<float>({3, 5, 2}, 2),
              numbers<float>({5, 5}, 3));
}

TEST_CASE("gradients of products") {
  auto product = [](auto& a, auto& b) { return matmul(a, b); };
  check_gradient(product, numbers<double>({3, 4}, 1), numbers<double>({4, 2}, 2));
  check_gradient(product, numbers<double>({2, 3, 4}, 1), numbers<double>({2, 4, 2}, 2));
  check_gradient(product, numbers<double>({2, 1, 3, 4}, 1), numbers<double>({3, 4, 2}, 2));
  check_gradient(product, numbers<double>({4}, 1), numbers<double>({4, 2}, 2));
  check_gradient([](auto& x, auto& w, auto& c) { return linear(x, w, c); },
                 numbers<double>({2, 3, 4}, 1), numbers<double>({2, 4}, 2),
                 numbers<double>({2}, 3));
}

TEST_CASE("a batch of products gives each product's bits, with any number of threads") {
  const xla::eager_mode_guard eager;
  const int before = xla::num_threads();
  for (const std::int64_t m : {1, 4, 5, 40}) {
    const auto a = numbers<float>({33, m, 65}, 1), b = numbers<float>({33, 65, 50}, 2);
    std::vector<float> want;
    for (std::int64_t i = 0; i < 33; ++i) {
      const auto one = matmul(a[i], b[i]).to_vector();
      want.insert(want.end(), one.begin(), one.end());
    }
    for (const int threads : {1, 2, 5}) {
      xla::set_num_threads(threads);
      CHECK(matmul(a, b).to_vector() == want);
    }
    xla::set_num_threads(before);
  }
}

TEST_CASE("ragged_dot multiplies groups of rows by a matrix each, and leaves other rows 0") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}});
  const auto w = xla::tensor<float>({{{1, 0}, {0, 1}}, {{5, 5}, {5, 5}}, {{1, 2}, {3, 4}}});
  const auto dot = [&](std::initializer_list<std::int64_t> sizes) {
    return ragged_dot(x, w, xla::tensor(std::vector<std::int64_t>(sizes))).to_vector();
  };
  // As jax.lax.ragged_dot.
  CHECK(dot({2, 0, 2}) == std::vector<float>{1, 2, 3, 4, 23, 34, 31, 46, 0, 0});
  CHECK(dot({1, 3, 1}) == std::vector<float>{1, 2, 35, 35, 55, 55, 75, 75, 39, 58});
  CHECK(dot({0, 0, 0}) == std::vector<float>(10));
  CHECK(dot({0, 0, 5}) == matmul(x, w[2]).to_vector());
  CHECK(dot({4, 9, 1}) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 95, 95});
  CHECK(dot({-3, 1, 2}) == dot({0, 1, 2}));
  // Infinities in the matrices of other groups do no harm.
  const float inf = std::numeric_limits<float>::infinity();
  const auto bad = xla::tensor<float>({{{1, 0}, {0, 1}}, {{inf, 5}, {5, inf}}, {{1, 2}, {3, 4}}});
  CHECK(ragged_dot(x, bad, xla::tensor<std::int64_t>({2, 0, 2})).to_vector() == dot({2, 0, 2}));
  CHECK_THROWS_WITH(ragged_dot(x, w, xla::tensor<std::int64_t>({2, 3})),
                    test::contains("ragged_dot: 2 group sizes for a weight of (3, 2, 2), which is "
                                   "(groups, k, n) (matmul.cpp:"));
  CHECK_THROWS_WITH(
      ragged_dot(x, xla::zeros<float>({3, 4, 2}), xla::tensor<std::int64_t>({1, 0, 0})),
      test::contains("ragged_dot: cannot multiply (5, 2) by matrices of (3, 4, 2): inner sizes"));
}

TEST_CASE("ragged_dot is the same in every mode, and its gradients are right") {
  const auto sizes = xla::tensor<std::int64_t>({3, 0, 2, 1});
  check_modes(
      [](auto& x, auto& w, auto& sizes) {
        const auto y = ragged_dot(x, w, sizes);
        sum(y * y).backward();
        return y;
      },
      test::parameter(numbers<float>({7, 5}, 1)), test::parameter(numbers<float>({4, 5, 3}, 2)),
      sizes);
  check_gradient([&](auto& x, auto& w) { return ragged_dot(x, w, sizes); },
                 numbers<double>({7, 3}, 1), numbers<double>({4, 3, 2}, 2));
}
