// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "support/products.hpp"
#include "support/threads.hpp"
#include "xla/kernel/gemm/packed_matrix.hpp"

namespace {

using test::index_t;
using test::matrix;
using test::same_bits;

/// A product whose elements are all of one type.
template <class T>
struct plain {
  using left = T;
  using right = T;
  using sum = T;
  static constexpr auto multiply = [](auto... p) { xla::kernel::gemm<T>(p...); };
  static auto number(T x) {
    return static_cast<std::conditional_t<std::is_integral_v<T>, std::uint64_t, long double>>(x);
  }
};

template <class T>
void check_product(index_t m, index_t n, index_t k, int left, int right, std::mt19937& random) {
  test::check_product<plain<T>>(m, n, k, left, right, random);
}

}  // namespace

TEMPLATE_TEST_CASE("gemm agrees with the plain triple loop, in every bit with itself", "", float,
                   double, std::int32_t, std::int64_t, std::uint8_t) {
  const test::restore_threads guard;
  std::mt19937 random(7);
  for (const index_t m : {0, 1, 2, 7, 9})
    for (const index_t n : {0, 1, 15, 17})
      for (const index_t k : {0, 1, 3, 33})
        check_product<TestType>(m, n, k, static_cast<int>(random() % 5),
                                static_cast<int>(random() % 5), random);
  for (int repeat = 0; repeat < 60; ++repeat) {
    const index_t most = repeat % 10 == 0 ? 150 : 40;
    const auto size = [&] { return static_cast<index_t>(random()) % most; };
    const index_t m = size(), n = size(), k = size();
    check_product<TestType>(m, n, k, repeat % 5, repeat / 5 % 5, random);
  }
}

TEMPLATE_TEST_CASE("gemm shares large products among threads", "", float, double, std::int32_t) {
  const test::restore_threads guard;
  std::mt19937 random(11);
  struct {
    index_t m, n, k;
  } const shapes[] = {{64, 128, 784}, {128, 784, 64}, {64, 784, 128},  {3, 900, 300},
                      {300, 1, 900},  {130, 70, 601}, {257, 51, 1100}, {1, 700, 1030},
                      {70, 400, 20},  {4, 1100, 257}, {2, 513, 600},   {1, 2000, 90}};
  for (const auto& shape : shapes)
    check_product<TestType>(shape.m, shape.n, shape.k, static_cast<int>(random() % 5),
                            static_cast<int>(random() % 5), random);
  // Columns of the left operand are together: each thread packs them for itself.
  check_product<TestType>(128, 784, 64, 1, 0, random);
  check_product<TestType>(101, 300, 90, 1, 1, random);
}

TEMPLATE_TEST_CASE("gemm of small m sums both layouts in one order", "", float, double) {
  const test::restore_threads guard;
  std::mt19937 random(5);
  for (const index_t m : {1, 2, 3, 4, 5})
    for (const index_t k : {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 300})
      check_product<TestType>(m, 1 + static_cast<index_t>(random()) % 600, k,
                              static_cast<int>(random() % 5), static_cast<int>(random() % 5),
                              random);
}

TEMPLATE_TEST_CASE(
    "up to four rows times a matrix have the same bits from whichever end it is read", "", float,
    double) {
  const test::restore_threads guard;
  using T = TestType;
  const index_t m = GENERATE(1, 2, 3, 4);
  for (const index_t k : {32, 64, 96, 128, 192, 256, 320, 512, 1024, 1030})
    for (const index_t n : {5, 16, 150, 1029, 2100}) {
      CAPTURE(m, k, n);
      const auto number = [](index_t i) { return static_cast<T>(i * 37 % 101 - 50) / 15; };
      std::vector<T> a(m * k), columns(k * n), rows(k * n), want(m * n);
      for (index_t i = 0; i < m * k; ++i) a[i] = number(i);
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < k; ++i)
          rows[i * n + j] = columns[j * k + i] = number(j * k + i + j);
      xla::kernel::gemm<T>(m, n, k, {a.data(), k, 1}, {rows.data(), n, 1}, want.data(), n);
      for (const int threads : {1, 1, 1, 2, 1}) {
        xla::set_num_threads(threads);
        std::vector<T> c(m * n);
        xla::kernel::gemm<T>(m, n, k, {a.data(), k, 1}, {columns.data(), 1, k}, c.data(), n);
        CHECK(test::same_bits(c, want));
      }
    }
}

TEMPLATE_TEST_CASE("gemm_rows: 1 to 4 rows have the bits of the product that they are part of", "",
                   float, double) {
  const test::restore_threads guard;
  using T = TestType;
  for (const index_t k : {0, 1, 17, 70, 700, 40000})
    for (const index_t n : {1, 2, 40, 300})
      for (const bool transposed : {false, true}) {
        CAPTURE(k, n, transposed);
        const index_t all = 7;
        const auto number = [&](index_t i) { return static_cast<T>(i * 37 % 101 - 50) / 16; };
        std::vector<T> a(all * k), b(k * n), want(all * n), c(all * n);
        for (index_t i = 0; i < all * k; ++i) a[i] = number(i) * T(1.1);
        for (index_t i = 0; i < k * n; ++i) b[i] = number(i + 5) * T(0.9);
        const xla::kernel::matrix_view<T> right{b.data(), transposed ? 1 : n, transposed ? k : 1};
        xla::kernel::gemm<T>(all, n, k, {a.data(), k, 1}, right, want.data(), n);
        for (index_t i = 0, rows = 1; i < all; i += rows++)  // 1, 2, 3, 1
          xla::kernel::gemm_rows<T>(std::min(rows, all - i), n, k, {a.data() + i * k, k, 1}, right,
                                    c.data() + i * n, n, nullptr, true);
        CHECK(c == want);
      }
}

TEMPLATE_TEST_CASE("a matrix that is packed once gives the bits of each product", "", float,
                   double) {
  const test::restore_threads guard;
  using T = TestType;
  for (const int threads : {1, 3})
    for (const index_t m : {5, 8, 33, 70})
      for (const index_t k : {1, 70, 700, 2000})
        for (const index_t n : {2, 40, 300})
          for (const bool transposed : {false, true}) {
            CAPTURE(threads, m, n, k, transposed);
            xla::set_num_threads(threads);
            const auto number = [](index_t i) { return static_cast<T>(i * 37 % 101 - 50) / 15; };
            std::vector<T> a(m * k), b(k * n), want(m * n), c(m * n);
            for (index_t i = 0; i < m * k; ++i) a[i] = number(i);
            for (index_t i = 0; i < k * n; ++i) b[i] = number(i + 5);
            const xla::kernel::matrix_view<T> right{b.data(), transposed ? 1 : n,
                                                    transposed ? k : 1};
            std::vector<T> packed(xla::kernel::packed_size<T>(n, k));
            xla::kernel::pack_matrix(n, k, right, packed.data());
            xla::kernel::gemm<T>(m, n, k, {a.data(), k, 1}, right, want.data(), n);
            xla::kernel::multiply_by_packed(m, n, k, a.data(), packed.data(), c.data());
            CHECK(c == want);
          }
}

TEMPLATE_TEST_CASE("gemm of small m takes long ones in parts", "", float, double) {
  const test::restore_threads guard;
  std::mt19937 random(13);
  for (const index_t m : {1, 2, 3, 4})
    for (const int right : {0, 1})
      check_product<TestType>(m, 19, 4099 + static_cast<index_t>(random()) % 200, 0, right, random);
}

TEMPLATE_TEST_CASE("gemm transposes columns while it multiplies the first rows", "", float,
                   double) {
  const test::restore_threads guard;
  std::mt19937 random(17);
  for (const index_t m : {5, 6, 7, 8, 9, 12, 16, 33})
    for (const index_t k : {7, 16, 33, 530, 1100})
      check_product<TestType>(m, 1 + static_cast<index_t>(random()) % 130, k,
                              static_cast<int>(random() % 4), 1, random);
}

TEMPLATE_TEST_CASE("gemm makes a product with some rows transposed", "", float, double) {
  const test::restore_threads guard;
  std::mt19937 random(19);
  for (const index_t m : {7, 8, 14, 16, 24, 31, 32, 48, 63, 64})
    for (const index_t k : {1, 30, 530})
      check_product<TestType>(m, 128 + static_cast<index_t>(random()) % 500, k,
                              static_cast<int>(random() % 5), 1, random);
  check_product<TestType>(16, 1101, 1030, 0, 1, random);
  check_product<TestType>(32, 700, 600, 1, 1, random);
}

TEST_CASE("gemm takes a large left operand some rows at a time") {
  const test::restore_threads guard;
  std::mt19937 random(3);
  check_product<float>(5301, 49, 400, 1, 0, random);
  check_product<float>(8193, 48, 257, 1, 1, random);
  check_product<float>(1030, 350, 520, 2, 0, random);
  check_product<double>(2061, 70, 300, 1, 0, random);
  check_product<float>(2101, 60, 700, 1, 0, random);
  check_product<float>(1300, 340, 410, 0, 1, random);
}

TEST_CASE("gemm gives threads rows of their own where the result is small") {
  const test::restore_threads guard;
  std::mt19937 random(23);
  check_product<float>(128, 784, 64, 1, 0, random);
  check_product<float>(131, 100, 90, 1, 0, random);
  check_product<float>(67, 49, 300, 0, 0, random);
  check_product<float>(250, 37, 610, 2, 0, random);
  check_product<double>(129, 35, 200, 0, 0, random);
}

TEST_CASE("gemm inside a parallel loop gives the same bits") {
  const test::restore_threads guard;
  xla::set_num_threads(4);
  std::mt19937 random(3);
  const matrix<float> a(100, 130, 1, random), b(130, 90, 0, random);
  const auto alone = test::product<plain<float>>(100, 90, 130, a, b, 90);
  std::vector<std::vector<float>> inside(6);
  xla::kernel::parallel_for(6, [&](index_t i) {
    inside[static_cast<std::size_t>(i)] = test::product<plain<float>>(100, 90, 130, a, b, 90);
  });
  for (const auto& c : inside) CHECK(same_bits(alone, c));
}
