// SPDX-License-Identifier: Apache-2.0
// Products over operands that are not matrices of floats by strides: the driver is the library's.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/threads.hpp"
#include "xla/kernel/gemm/long_k.hpp"
#include "xla/shape/bfloat16.hpp"

using namespace xla::kernel::detail;
using xla::bfloat16;
using xla::kernel::matrix_view;
using xla::kernel::plain_view;
using xla::kernel::transposed_view;

namespace {

template <class T = float>
std::vector<T> numbers(index_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> v(static_cast<std::size_t>(count));
  for (T& x : v) x = static_cast<T>(std::uniform_real_distribution<float>(-1, 1)(random));
  return v;
}

template <class Tile, class Left, class Right, class Result>
void multiply_with(index_t m, index_t n, index_t k, Left a, Right b, Result c) {
  multiply(product<Tile, Left, Right, Result>{m, n, k, a, b, c});
}

/// The same with strided operands of any form and element.
template <class Tile = tile<float>, class A, class B>
std::vector<float> strided(index_t m, index_t n, index_t k, A a, B b) {
  std::vector<float> c(static_cast<std::size_t>(m * n), 77.f);
  multiply_with<Tile>(m, n, k, strided_left<Tile, A>{a}, strided_right<Tile, B>{b},
                      strided_rows<float>{c.data(), n});
  return c;
}

/// Calls f(threads) with some numbers of threads; all results must have the same bits.
template <class F>
auto any_threads(F&& f) {
  const test::restore_threads guard;
  xla::set_num_threads(1);
  const auto c = f();
  for (const int threads : {2, 5}) {
    xla::set_num_threads(threads);
    CHECK(f() == c);
  }
  return c;
}

}  // namespace

TEST_CASE("a product whose strides are types has the bits of any other") {
  struct {
    index_t m, n, k;
  } const shapes[] = {{5, 7, 3}, {9, 130, 33}, {64, 128, 784}, {300, 50, 600}, {1400, 49, 400}};
  for (const auto& [m, n, k] : shapes) {
    CAPTURE(m, n, k);
    const auto a = numbers(m * k, 1), b = numbers(k * n, 2);
    const auto alike = [&, m = m, n = n, k = k](auto left, auto right) {
      const auto c = any_threads([&] { return strided(m, n, k, left, right); });
      std::vector<float> want(c.size());
      xla::kernel::gemm<float>(m, n, k, {left.data, left.row_stride, left.col_stride},
                               {right.data, right.row_stride, right.col_stride}, want.data(), n);
      CHECK(c == want);
    };
    const plain_view<float> a_plain{a.data(), k, {}}, b_plain{b.data(), n, {}};
    const transposed_view<float> a_transposed{a.data(), {}, m}, b_transposed{b.data(), {}, k};
    alike(a_plain, b_plain);
    alike(a_plain, b_transposed);
    alike(a_transposed, b_plain);
    alike(a_transposed, b_transposed);
  }
}

TEST_CASE("elements of another type are converted while they are packed") {
  for (const index_t m : {1, 30, 700})
    for (const bool transposed : {false, true}) {
      const index_t n = 70, k = 600;
      const auto a = numbers<bfloat16>(m * k, 3), b = numbers<bfloat16>(k * n, 4);
      const std::vector<float> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
      const auto run = [&](const auto& x, const auto& y) {
        using view = matrix_view<std::remove_cvref_t<decltype(x[0])>>;
        const auto left = transposed ? view{x.data(), 1, m} : view{x.data(), k, 1};
        const auto right = transposed
                               ? matrix_view<std::remove_cvref_t<decltype(y[0])>>{y.data(), 1, k}
                               : matrix_view<std::remove_cvref_t<decltype(y[0])>>{y.data(), n, 1};
        return any_threads([&] { return strided(m, n, k, left, right); });
      };
      const auto want = run(wide_a, wide_b);
      CHECK(run(a, b) == want);
      CHECK(run(wide_a, b) == want);
    }
}

// Convolutions: images (n, height, width, channels), channels innermost. The rows of a are what the
// taps see at each pixel of the result, through pointers; twelve pixels by two vectors in
// registers.
namespace {

/// Pixels (i, y * step + dy, x * step + dx) of images, one (dy, dx) a tap, for pixels (i, y, x) of
/// a grid. What is outside is 0.
struct patches {
  const float* image;
  index_t height, width, channels;
  index_t rows, columns;  // of the grid
  index_t step;
  std::vector<std::pair<index_t, index_t>> taps;

  pointer_micro_panel<float> read(range some, range ks) const {
    static const std::vector<float> zeros(1024);
    const index_t first = ks.begin / channels, last = (ks.end - 1) / channels;
    const float** const table = left_scratch().get<const float*>((last - first + 1) * some.size());
    for (index_t i = some.begin; i < some.end; ++i) {
      const index_t x = i % columns * step, y = i / columns % rows * step;
      const float* const from = image + i / columns / rows * height * width * channels;
      for (index_t t = first; t <= last; ++t) {
        const auto [dy, dx] = taps[static_cast<std::size_t>(t)];
        const bool inside = y + dy >= 0 && y + dy < height && x + dx >= 0 && x + dx < width;
        table[(t - first) * some.size() + i - some.begin] =
            inside ? from + ((y + dy) * width + x + dx) * channels : zeros.data();
      }
    }
    return {table, some.size(), channels, ks.begin % channels};
  }
  index_t grain() const { return channels <= 512 ? channels : 16; }
  upcoming<float> ahead(range, range, index_t) const { return {}; }
};

/// Weights (out, in, taps), or for the input's gradient the other way, of some taps.
struct weights {
  const float* data;
  index_t in, k_stride, column_stride;
  std::vector<index_t> taps;

  void pack(float* to, index_t k, index_t column, index_t depth, index_t columns) const {
    const index_t wide = round_up(columns, xla::kernel::lanes<float>);
    for (index_t q = k; q < k + depth; ++q)
      for (index_t j = 0; j < wide; ++j)
        *to++ = j < columns ? data[taps[static_cast<std::size_t>(q / in)] + q % in * k_stride +
                                   (column + j) * column_stride]
                            : 0.f;
  }
};

struct convolution {
  index_t images, height, width, in, out, size, stride, padding;

  index_t rows() const { return (height + 2 * padding - size) / stride + 1; }
  index_t columns() const { return (width + 2 * padding - size) / stride + 1; }
  index_t inputs() const { return images * height * width * in; }
  index_t outputs() const { return images * rows() * columns() * out; }
  index_t parameters() const { return out * in * size * size; }

  /// Calls f(index of input, of weight, of output) for all products.
  template <class F>
  void each(F&& f) const {
    for (index_t i = 0; i < images * rows() * columns(); ++i)
      for (index_t t = 0; t < size * size; ++t) {
        const index_t y = i / columns() % rows() * stride + t / size - padding;
        const index_t x = i % columns() * stride + t % size - padding;
        if (y < 0 || y >= height || x < 0 || x >= width) continue;
        const index_t pixel = (i / columns() / rows() * height + y) * width + x;
        for (index_t c = 0; c < in; ++c)
          for (index_t o = 0; o < out; ++o)
            f(pixel * in + c, (o * in + c) * size * size + t, i * out + o);
      }
  }
};

using wide_tile = tile<float, 12, 2>;

std::vector<float> forward(const convolution& c, const float* image, const float* weight) {
  patches a{image, c.height, c.width, c.in, c.rows(), c.columns(), c.stride, {}};
  weights b{weight, c.in, c.size * c.size, c.in * c.size * c.size, {}};
  for (index_t t = 0; t < c.size * c.size; ++t) {
    a.taps.emplace_back(t / c.size - c.padding, t % c.size - c.padding);
    b.taps.push_back(t);
  }
  std::vector<float> result(static_cast<std::size_t>(c.outputs()), 77.f);
  multiply_with<wide_tile>(c.images * c.rows() * c.columns(), c.out, c.in * c.size * c.size, a, b,
                           strided_rows<float>{result.data(), c.out});
  return result;
}

/// A product for each phase: pixels whose distance to a tap is the same modulo the stride.
std::vector<float> input_gradient(const convolution& c, const float* d, const float* weight) {
  std::vector<float> result(static_cast<std::size_t>(c.inputs()));
  for (index_t phase = 0; phase < c.stride * c.stride; ++phase) {
    const index_t py = phase / c.stride, px = phase % c.stride;
    const index_t rows = (c.height - py + c.stride - 1) / c.stride;
    const index_t columns = (c.width - px + c.stride - 1) / c.stride;
    patches a{d, c.rows(), c.columns(), c.out, rows, columns, 1, {}};
    weights b{weight, c.out, c.in * c.size * c.size, c.size * c.size, {}};
    for (index_t t = 0; t < c.size * c.size; ++t) {
      const index_t y = py + c.padding - t / c.size, x = px + c.padding - t % c.size;
      if (y % c.stride != 0 || x % c.stride != 0) continue;
      a.taps.emplace_back(y / c.stride, x / c.stride);
      b.taps.push_back(t);
    }
    std::vector<float*> places;
    for (index_t i = 0; i < c.images * rows * columns; ++i)
      places.push_back(&result[static_cast<std::size_t>(
          (((i / columns / rows * c.height + i / columns % rows * c.stride + py) * c.width) +
           i % columns * c.stride + px) *
          c.in)]);
    multiply_with<wide_tile>(c.images * rows * columns, c.in,
                             c.out * static_cast<index_t>(b.taps.size()), a, b,
                             pointer_rows<float>{places.data(), 0});
  }
  return result;
}

/// The largest difference to sums in double, of x[ix] * y[iy] at `at`.
double error(const convolution& c, const std::vector<float>& got, const float* input,
             const float* weight, const float* output) {
  std::vector<double> want(got.size());
  c.each([&](index_t i, index_t w, index_t o) {
    const double right = weight[w];
    if (input != nullptr) want[static_cast<std::size_t>(o)] += input[i] * right;
    else want[static_cast<std::size_t>(i)] += output[o] * right;
  });
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) most = std::max(most, std::abs(got[i] - want[i]));
  return most;
}

}  // namespace

TEST_CASE("a convolution is a product through pointers") {
  const convolution cases[] = {{1, 5, 7, 3, 5, 3, 1, 1},     {2, 9, 8, 16, 33, 3, 2, 1},
                               {1, 12, 11, 64, 40, 3, 1, 1}, {3, 28, 28, 8, 16, 1, 1, 0},
                               {1, 16, 17, 3, 20, 7, 2, 3},  {1, 6, 6, 600, 16, 1, 1, 0}};
  for (const convolution& c : cases) {
    CAPTURE(c.images, c.height, c.width, c.in, c.out, c.size, c.stride);
    const auto image = numbers(c.inputs(), 5), weight = numbers(c.parameters(), 6);
    const auto out = any_threads([&] { return forward(c, image.data(), weight.data()); });
    CHECK(error(c, out, image.data(), weight.data(), nullptr) < 1e-5 * std::sqrt(c.in) * c.size);
    const auto d = numbers(c.outputs(), 7);
    const auto dx = any_threads([&] { return input_gradient(c, d.data(), weight.data()); });
    CHECK(error(c, dx, nullptr, weight.data(), d.data()) < 1e-5 * std::sqrt(c.out) * c.size);
  }
}

TEST_CASE("rows that are anywhere have the bits of the same rows together") {
  const index_t m = 100, n = 60, k = 1300, table = 40;
  const auto rows = numbers(table * k, 8), b = numbers(k * n, 9);
  std::vector<float> together;
  std::vector<const float*> places;
  for (index_t i = 0; i < m; ++i) {
    const auto row = rows.begin() + i * 7 % table * k;
    places.push_back(&*row);
    together.insert(together.end(), row, row + k);
  }
  const matrix_view<float> right{b.data(), n, 1};
  const auto c = any_threads([&] {
    std::vector<float> c(static_cast<std::size_t>(m * n));
    multiply_with<tile<float>>(m, n, k, pointer_left<float>{places.data(), m, k},
                               strided_right<tile<float>, matrix_view<float>>{right},
                               strided_rows<float>{c.data(), n});
    return c;
  });
  CHECK(c == strided(m, n, k, matrix_view<float>{together.data(), k, 1}, right));
}
