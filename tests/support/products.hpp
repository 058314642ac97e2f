// SPDX-License-Identifier: Apache-2.0
// What is asked of a product of matrices, whatever multiplies: values, gaps, bits of its parts.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "support/threads.hpp"
#include "xla/kernel/fused/epilogue.hpp"
#include "xla/kernel/memory/matrix_view.hpp"
#include "xla/kernel/threads/parallel.hpp"
#include "xla/shape/bfloat16.hpp"

namespace test {

using index_t = std::int64_t;

/// A random matrix: row-major (0), column-major (1), with gaps (2, 3), one row repeated (4).
template <class T>
struct matrix {
  std::vector<T> data;
  xla::kernel::matrix_view<T> view{};

  matrix(index_t rows, index_t columns, int layout, std::mt19937& random) {
    const index_t gap = layout == 2 ? 2 : 1;
    const index_t row_stride = layout == 1   ? 1
                               : layout == 4 ? 0
                                             : columns * gap + (layout == 3 ? 5 : 0);
    const index_t col_stride = layout == 1 ? rows : gap;
    data.resize(static_cast<std::size_t>((rows + 1) * (columns + 1) * gap + rows * 5));
    for (T& value : data) {
      if constexpr (std::is_integral_v<T>) value = static_cast<T>(random());
      else if constexpr (std::is_same_v<T, double>)
        value = std::uniform_real_distribution<double>(-1, 1)(random);
      else value = static_cast<T>(std::uniform_real_distribution<float>(-1, 1)(random));
    }
    view = {data.data(), row_stride, col_stride};
  }

  /// The same numbers, row-major or column-major.
  template <class U>
  matrix(const matrix<U>& from, index_t rows, index_t columns, bool row_major)
      : data(static_cast<std::size_t>(rows * columns + 1)) {
    view = {data.data(), row_major ? columns : 1, row_major ? 1 : rows};
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        data[static_cast<std::size_t>(i * view.row_stride + j * view.col_stride)] =
            static_cast<T>(from.at(i, j));
  }

  T at(index_t i, index_t j) const { return view.data[i * view.row_stride + j * view.col_stride]; }
};

/// A product of a kind: `left` and `right` are the operands' elements, `sum` the result's,
/// multiply(m, n, k, a, b, c, ldc) does it, and number(x) is what it takes x for, exactly.
template <class P>
std::vector<typename P::sum> product(index_t m, index_t n, index_t k,
                                     const matrix<typename P::left>& a,
                                     const matrix<typename P::right>& b, index_t ldc) {
  std::vector<typename P::sum> c(static_cast<std::size_t>(m * ldc), typename P::sum{77});
  P::multiply(m, n, k, a.view, b.view, c.data(), ldc);
  return c;
}

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() &&
         (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

/// The kinds whose operands are rounded to bfloat16.
template <class A, class B>
struct rounding {
  using left = A;
  using right = B;
  using sum = float;
  static long double number(float x) { return static_cast<float>(xla::bfloat16{x}); }
};

/// Whether an epilogue is notified of every part of a product: multiply(a, b, c, after) of 100
/// columns.
template <class F>
void check_epilogue(index_t m, index_t k, std::mt19937& random, F multiply) {
  constexpr index_t n = 100;
  const matrix<float> a(m, k, 0, random), b(k, n, 1, random);
  std::vector<float> c(static_cast<std::size_t>(m * n)), want = c;
  multiply(a.view, b.view, want.data(), nullptr);
  for (float& x : want) x += 1;
  float* const data = c.data();
  const xla::kernel::epilogue after(
      m, n, n * 4,
      [](const void* self, index_t first, index_t last) {
        float* const rows = *static_cast<float* const*>(self);
        for (index_t i = first * n; i < last * n; ++i) rows[i] += 1;
      },
      &data);
  multiply(a.view, b.view, data, &after);
  after.rest(n);
  CHECK(same_bits(c, want));
}

/// Everything asked of one product: its values, untouched gaps, and the bits of its parts.
template <class P>
void check_product(index_t m, index_t n, index_t k, int left, int right, std::mt19937& random) {
  using A = typename P::left;
  using B = typename P::right;
  using T = typename P::sum;
  CAPTURE(m, n, k, left, right);
  const matrix<A> a(m, k, left, random);
  const matrix<B> b(k, n, right, random);
  const index_t ldc = n + (n == 1 ? random() % 2 : random() % 4);
  xla::set_num_threads(1);
  const auto c = product<P>(m, n, k, a, b, ldc);
  index_t wrong = 0;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < ldc; ++j) {
      const T got = c[static_cast<std::size_t>(i * ldc + j)];
      decltype(P::number(A{})) want = 0;
      for (index_t q = 0; j < n && q < k; ++q)
        want += P::number(a.at(i, q)) * P::number(b.at(q, j));
      if (j >= n) wrong += got != T{77};
      else if constexpr (std::is_integral_v<T>) wrong += got != static_cast<T>(want);
      else
        wrong += !(std::abs(got - want) <=
                   static_cast<long double>(k + 1) * std::numeric_limits<T>::epsilon());
    }
  CHECK(wrong == 0);
  for (const int threads : {2, 4}) {
    xla::set_num_threads(threads);
    CHECK(same_bits(c, product<P>(m, n, k, a, b, ldc)));
  }
  if (m == 0 || n == 0) return;
  for (const bool a_major : {false, true})
    for (const bool b_major : {false, true})
      CHECK(same_bits(c, product<P>(m, n, k, {a, m, k, a_major}, {b, k, n, b_major}, ldc)));
  // A part, in the same order of summation: of small m, of one column, or of neither.
  const auto below = [&](index_t size) { return static_cast<index_t>(random()) % size; };
  const bool few = m <= 4 || n == 1;
  const index_t fewest_rows = few ? 1 : 5, fewest_columns = few ? 1 : 2;
  const index_t i0 = below(m - fewest_rows + 1), j0 = below(n - fewest_columns + 1);
  const index_t rows = fewest_rows + below(m - i0 - fewest_rows + 1);
  const index_t columns = fewest_columns + below(n - j0 - fewest_columns + 1);
  std::vector<T> part(static_cast<std::size_t>(rows * columns));
  P::multiply(rows, columns, k, a.view.from(i0, 0), b.view.from(0, j0), part.data(), columns);
  index_t differ = 0;
  for (index_t i = 0; i < rows; ++i)
    differ += std::memcmp(&part[static_cast<std::size_t>(i * columns)],
                          &c[static_cast<std::size_t>((i0 + i) * ldc + j0)],
                          static_cast<std::size_t>(columns) * sizeof(T)) != 0;
  CHECK(differ == 0);
}

}  // namespace test
