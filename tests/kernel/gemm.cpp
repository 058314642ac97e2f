// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <xla/kernel/gemm_long.hpp>

#include "catch.hpp"
#include "support/threads.hpp"

using xla::kernel::gemm;
using xla::kernel::matrix_view;

namespace {

using index_t = std::int64_t;

/// A random matrix: row-major (0), column-major (1), with gaps (2, 3), one row repeated (4).
template <class T>
struct matrix {
  std::vector<T> data;
  matrix_view<T> view{};

  matrix(index_t rows, index_t columns, int layout, std::mt19937& random) {
    const index_t gap = layout == 2 ? 2 : 1;
    const index_t row_stride = layout == 1   ? 1
                               : layout == 4 ? 0
                                             : columns * gap + (layout == 3 ? 5 : 0);
    const index_t col_stride = layout == 1 ? rows : gap;
    data.resize(static_cast<std::size_t>((rows + 1) * (columns + 1) * gap + rows * 5));
    for (T& value : data) {
      if constexpr (std::is_floating_point_v<T>)
        value = std::uniform_real_distribution<T>(-1, 1)(random);
      else value = static_cast<T>(random());
    }
    view = {data.data(), row_stride, col_stride};
  }

  /// The same numbers, row-major or column-major.
  matrix(const matrix& from, index_t rows, index_t columns, bool row_major)
      : data(static_cast<std::size_t>(rows * columns + 1)) {
    view = {data.data(), row_major ? columns : 1, row_major ? 1 : rows};
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        data[static_cast<std::size_t>(i * view.row_stride + j * view.col_stride)] = from.at(i, j);
  }

  T at(index_t i, index_t j) const { return view.data[i * view.row_stride + j * view.col_stride]; }
};

template <class T>
using sum_type = std::conditional_t<std::is_floating_point_v<T>, long double, std::uint64_t>;

template <class T>
bool close(T got, sum_type<T> want, index_t k) {
  if constexpr (std::is_floating_point_v<T>)
    return std::abs(got - want) <=
           static_cast<long double>(k + 1) * std::numeric_limits<T>::epsilon();
  else return got == static_cast<T>(want);
}

template <class T>
std::vector<T> product(index_t m, index_t n, index_t k, const matrix<T>& a, const matrix<T>& b,
                       index_t ldc) {
  std::vector<T> c(static_cast<std::size_t>(m * ldc), T{77});
  gemm<T>(m, n, k, a.view, b.view, c.data(), ldc);
  return c;
}

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() &&
         (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

/// Everything asked of one product: its values, untouched gaps, and the bits of its parts.
template <class T>
void check_product(index_t m, index_t n, index_t k, int left, int right, std::mt19937& random) {
  CAPTURE(m, n, k, left, right);
  const matrix<T> a(m, k, left, random), b(k, n, right, random);
  const index_t ldc = n + (n == 1 ? random() % 2 : random() % 4);
  xla::set_num_threads(1);
  const auto c = product(m, n, k, a, b, ldc);
  index_t wrong = 0;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < ldc; ++j) {
      const T got = c[static_cast<std::size_t>(i * ldc + j)];
      sum_type<T> want = 0;
      for (index_t q = 0; j < n && q < k; ++q)
        want += static_cast<sum_type<T>>(a.at(i, q)) * static_cast<sum_type<T>>(b.at(q, j));
      wrong += j < n ? !close<T>(got, want, k) : got != T{77};
    }
  CHECK(wrong == 0);
  for (const int threads : {2, 4}) {
    xla::set_num_threads(threads);
    CHECK(same_bits(c, product(m, n, k, a, b, ldc)));
  }
  if (m == 0 || n == 0) return;
  for (const bool a_major : {false, true})
    for (const bool b_major : {false, true})
      CHECK(same_bits(c, product<T>(m, n, k, {a, m, k, a_major}, {b, k, n, b_major}, ldc)));
  // A part, in the same order of summation: of few rows, of one column, or of neither.
  const auto below = [&](index_t size) { return static_cast<index_t>(random()) % size; };
  const bool few = m <= 4 || n == 1;
  const index_t fewest_rows = few ? 1 : 5, fewest_columns = few ? 1 : 2;
  const index_t i0 = below(m - fewest_rows + 1), j0 = below(n - fewest_columns + 1);
  const index_t rows = fewest_rows + below(m - i0 - fewest_rows + 1);
  const index_t columns = fewest_columns + below(n - j0 - fewest_columns + 1);
  std::vector<T> part(static_cast<std::size_t>(rows * columns));
  gemm<T>(rows, columns, k,
          {&a.view.data[i0 * a.view.row_stride], a.view.row_stride, a.view.col_stride},
          {&b.view.data[j0 * b.view.col_stride], b.view.row_stride, b.view.col_stride}, part.data(),
          columns);
  index_t differ = 0;
  for (index_t i = 0; i < rows; ++i)
    differ += std::memcmp(&part[static_cast<std::size_t>(i * columns)],
                          &c[static_cast<std::size_t>((i0 + i) * ldc + j0)],
                          static_cast<std::size_t>(columns) * sizeof(T)) != 0;
  CHECK(differ == 0);
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
}

TEMPLATE_TEST_CASE("gemm with few rows sums both layouts in one order", "", float, double) {
  const test::restore_threads guard;
  std::mt19937 random(5);
  for (const index_t m : {1, 2, 3, 4, 5})
    for (const index_t k : {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 300})
      check_product<TestType>(m, 1 + static_cast<index_t>(random()) % 600, k,
                              static_cast<int>(random() % 5), static_cast<int>(random() % 5),
                              random);
}

TEMPLATE_TEST_CASE("gemm with few rows takes long ones in parts", "", float, double) {
  const test::restore_threads guard;
  std::mt19937 random(13);
  for (const index_t m : {1, 2, 3, 4})
    for (const int right : {0, 1})
      check_product<TestType>(m, 19, 4099 + static_cast<index_t>(random()) % 200, 0, right, random);
}

TEMPLATE_TEST_CASE("gemm turns columns while it multiplies the first rows", "", float, double) {
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

TEST_CASE("gemm packs a large transposed left operand some rows at a time") {
  const test::restore_threads guard;
  std::mt19937 random(3);
  check_product<float>(5301, 49, 400, 1, 0, random);
  check_product<float>(8193, 48, 257, 1, 1, random);
  check_product<float>(1030, 350, 520, 2, 0, random);
  check_product<double>(2061, 70, 300, 1, 0, random);
}

TEST_CASE("gemm inside a parallel loop gives the same bits") {
  const test::restore_threads guard;
  xla::set_num_threads(4);
  std::mt19937 random(3);
  const matrix<float> a(100, 130, 1, random), b(130, 90, 0, random);
  const auto alone = product<float>(100, 90, 130, a, b, 90);
  std::vector<std::vector<float>> inside(6);
  xla::kernel::parallel_for(6, [&](index_t i) {
    inside[static_cast<std::size_t>(i)] = product<float>(100, 90, 130, a, b, 90);
  });
  for (const auto& c : inside) CHECK(same_bits(alone, c));
}
