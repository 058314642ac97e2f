// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions and those with groups of a few channels, against sums in double.
#include "xla/kernel/convolution/depthwise.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/sanitized.hpp"
#include "support/threads.hpp"

namespace {

using xla::kernel::conv_sizes;
using xla::kernel::conv_weights;

template <class T>
std::vector<T> numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> v(static_cast<std::size_t>(count));
  for (T& x : v) x = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
  return v;
}

conv_sizes sizes(std::int64_t batch, std::pair<int, int> image, std::int64_t in, std::int64_t out,
                 std::int64_t groups, std::pair<int, int> kernel, std::int64_t stride = 1,
                 std::int64_t padding = 0, std::int64_t dilation = 1) {
  const auto size = [&](std::int64_t n, std::int64_t k) {
    return (n + 2 * padding - dilation * (k - 1) - 1) / stride + 1;
  };
  return {batch,
          image.first,
          image.second,
          in,
          size(image.first, kernel.first),
          size(image.second, kernel.second),
          out,
          {kernel.first, kernel.second},
          {stride, stride},
          {padding, padding},
          {dilation, dilation},
          groups};
}

/// Calls f(index of input, of weight, of output) for all products.
template <class F>
void each_product(const conv_sizes& c, F&& f) {
  const std::int64_t in = c.in / c.groups, out = c.out / c.groups, taps = c.taps();
  for (std::int64_t i = 0; i < c.batch * c.out_height * c.out_width; ++i)
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t y = i / c.out_width % c.out_height * c.stride[0] - c.padding[0] +
                             t / c.kernel[1] * c.dilation[0];
      const std::int64_t x =
          i % c.out_width * c.stride[1] - c.padding[1] + t % c.kernel[1] * c.dilation[1];
      if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
      const std::int64_t pixel = (i / c.out_width / c.out_height * c.height + y) * c.width + x;
      for (std::int64_t o = 0; o < c.out; ++o)
        for (std::int64_t k = 0; k < in; ++k)
          f(pixel * c.in + o / out * in + k, (o * in + k) * taps + t, i * c.out + o);
    }
}

/// The largest difference, over the largest number.
template <class T>
double error(const std::vector<T>& got, const std::vector<double>& want) {
  double most = 0, largest = 1e-30;
  for (std::size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(got[i]) - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  return std::isfinite(std::accumulate(got.begin(), got.end(), 0.0)) ? most / largest : 1;
}

/// What f writes, the same with any number of threads.
template <class T, class F>
std::vector<T> any_threads(std::size_t count, F&& f) {
  const test::restore_threads guard(1);
  std::vector<T> result(count, T(77)), again(count, T(78));
  f(result.data());
  for (const int threads : {2, 5}) {
    xla::set_num_threads(threads);
    f(again.data());
    CHECK(again == result);
  }
  return result;
}

/// The same bits with weights that were packed before.
template <class T>
void check_packed(const conv_sizes& c, conv_weights<T> rows, const std::vector<T>& x,
                  conv_weights<T> columns, const std::vector<T>& dy) {
  using xla::kernel::conv_direction;
  const auto size = static_cast<std::size_t>(xla::kernel::small_groups_packed_size<T>(c));
  std::vector<T> packed(size + 1, T{44}), y(dy.size()), dx(x.size());
  const auto pack = [&](conv_direction d, conv_weights<T>& w) {
    xla::kernel::small_groups_pack(c, d, w, packed.data());
    CHECK(packed[size] == 44);
    w.packed = packed.data();
  };
  xla::kernel::small_groups_forward(c, x.data(), rows, y.data(), nullptr);
  pack(conv_direction::forward, rows);
  CHECK(y == any_threads<T>(y.size(), [&](T* to) {
          xla::kernel::small_groups_forward(c, x.data(), rows, to, nullptr);
        }));
  xla::kernel::small_groups_input_gradient(c, dy.data(), columns, dx.data(), nullptr);
  pack(conv_direction::input_gradient, columns);
  CHECK(dx == any_threads<T>(dx.size(), [&](T* to) {
          xla::kernel::small_groups_input_gradient(c, dy.data(), columns, to, nullptr);
        }));
}

template <class T>
void check(const conv_sizes& c) {
  CAPTURE(c.batch, c.height, c.width, c.in, c.out, c.groups, c.kernel[0], c.kernel[1], c.stride[1],
          c.padding[1], c.dilation[1], c.out_height, c.out_width);
  REQUIRE(xla::kernel::has_small_groups<T>(c));
  const std::int64_t taps = c.taps(), in = c.in / c.groups;
  const auto x = numbers<T>(c.batch * c.height * c.width * c.in, 1);
  const auto w = numbers<T>(c.out * in * taps, 2);
  const auto dy = numbers<T>(c.batch * c.out_height * c.out_width * c.out, 3);
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
  each_product(c, [&](auto i, auto k, auto o) {
    const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(k),
               d = static_cast<std::size_t>(o);
    y[d] += static_cast<double>(x[a]) * static_cast<double>(w[b]);
    dx[a] += static_cast<double>(dy[d]) * static_cast<double>(w[b]);
    dw[b] += static_cast<double>(dy[d]) * static_cast<double>(x[a]);
  });
  const double bound = sizeof(T) == 4 ? 2e-6 : 1e-14;
  const conv_weights<T> rows{w.data(), in * taps, taps, 1};
  CHECK(error(any_threads<T>(y.size(),
                             [&](T* to) {
                               xla::kernel::small_groups_forward(c, x.data(), rows, to, nullptr);
                             }),
              y) < bound);
  // The same weights in another order: (tap, in, out).
  std::vector<T> transposed(w.size());
  for (std::int64_t o = 0; o < c.out; ++o)
    for (std::int64_t e = 0; e < in * taps; ++e)
      transposed[static_cast<std::size_t>((e % taps * in + e / taps) * c.out + o)] =
          w[static_cast<std::size_t>(o * in * taps + e)];
  const conv_weights<T> columns{transposed.data(), 1, c.out, in * c.out};
  CHECK(error(any_threads<T>(dx.size(),
                             [&](T* to) {
                               xla::kernel::small_groups_input_gradient(c, dy.data(), columns, to,
                                                                        nullptr);
                             }),
              dx) < bound);
  check_packed(c, rows, x, columns, dy);
  CHECK(error(any_threads<T>(dw.size(),
                             [&](T* to) {
                               xla::kernel::small_groups_weight_gradient(c, x.data(), dy.data(),
                                                                         to);
                             }),
              dw) < bound);
}

}  // namespace

TEMPLATE_TEST_CASE("depthwise convolutions, three and five wide", "", float, double) {
  for (const int kernel : {3, 5})
    for (const int stride : {1, 2})
      for (const int padding : {0, 1, 2, 4})
        for (const int width : {3, 6, 7, 9, 16, 23})
          if (width + 2 * padding >= kernel &&
              !(test::sanitized && sizeof(TestType) == 8 && width > 9))
            check<TestType>(sizes(2, {5, width}, 24, 24, 24, {kernel, kernel}, stride, padding));
  check<TestType>(sizes(3, {30, 28}, 48, 48, 48, {3, 3}, 1, 1));
  check<TestType>(sizes(2, {20, 14}, 144, 144, 144, {5, 5}, 2, 2));
  for (const int padding : {3, 6}) {  // rows of the result that meet none of an image
    auto c = sizes(2, {5, 16}, 24, 24, 24, {3, 3}, 1, 1);
    c.padding[0] = padding;
    c.out_height = 3 + 2 * padding;
    check<TestType>(c);
  }
  for (const int height : {1, 2, 8})  // of the kernel
    check<TestType>(sizes(2, {11, 15}, 32, 32, 32, {height, 3}, 1, 2));
}

TEMPLATE_TEST_CASE("depthwise convolutions of any kernel, stride and dilation", "", float, double) {
  check<TestType>(sizes(2, {9, 10}, 20, 20, 20, {7, 7}, 1, 3));
  check<TestType>(sizes(2, {11, 13}, 35, 35, 35, {4, 2}, 3, 1));
  check<TestType>(sizes(1, {12, 12}, 17, 17, 17, {3, 3}, 1, 2, 2));
  check<TestType>(sizes(1, {12, 12}, 16, 16, 16, {1, 1}, 2, 0));
  check<TestType>(sizes(1, {20, 9}, 16, 16, 16, {9, 3}, 1, 4));
  check<TestType>(sizes(1, {3, 40}, 32, 32, 32, {1, 3}, 2, 0));
  check<TestType>(sizes(1, {2, 2}, 16, 16, 16, {3, 3}, 2, 6));  // pixels of padding alone
  for (const int channels : {1, 3, 5, 8})
    for (const int stride : {1, 2})
      check<TestType>(sizes(2, {9, 10}, channels, channels, channels, {3, 3}, stride, 1));
  check<TestType>(sizes(2, {9, 10}, 8, 24, 8, {3, 3}, 1, 1));
  check<TestType>(sizes(2, {9, 10}, 3, 6, 3, {5, 5}, 2, 1));
  check<TestType>(sizes(0, {9, 10}, 16, 16, 16, {3, 3}, 1, 1));
}

TEMPLATE_TEST_CASE("convolutions with groups of a few channels", "", float, double) {
  for (const int group : {2, 4, 8})
    for (const int stride : {1, 2})
      for (const int width : {4, 7, 18})
        for (const int channels : {8, 16, 40, 64})
          if (group <= xla::kernel::lanes<TestType>)
            check<TestType>(
                sizes(2, {6, width}, channels, channels, channels / group, {3, 3}, stride, 1));
  if (xla::kernel::lanes<TestType> < 4) return;
  check<TestType>(sizes(2, {9, 14}, 32, 32, 8, {5, 5}, 1, 2));
  check<TestType>(sizes(2, {9, 14}, 32, 32, 8, {3, 3}, 1, 2, 2));
  check<TestType>(sizes(1, {9, 14}, 32, 32, 8, {3, 3}, 3, 0));
}

// Sizes decide by a machine's caches whether a pass prefetches; here both are asked for.
TEST_CASE("depthwise sums have the same bits with prefetching") {
  using namespace xla::kernel;
  const auto run = [](auto stride, std::pair<int, int> image) {
    const auto c = sizes(2, image, 24, 24, 24, {3, 3}, stride, 1);
    const auto x = numbers<float>(detail::input_count(c), 1), w = numbers<float>(24 * 9, 2);
    std::vector<float> packed(static_cast<std::size_t>(small_groups_packed_size<float>(c)));
    small_groups_pack(c, conv_direction::forward, {w.data(), 9, 9, 1}, packed.data());
    std::vector<float> near(static_cast<std::size_t>(c.batch * c.out_height * c.out_width * 24));
    std::vector<float> far(near.size(), 77);
    for (auto* to : {&near, &far}) {
      detail::small_groups_pass<float> p{c,          false,   x.data(),  packed.data(),
                                         to->data(), nullptr, to == &far};
      detail::by_strips<3, stride, 1>(p, c.padding[1]);
    }
    CHECK(std::any_of(near.begin(), near.end(), [](float v) { return v != 0; }));
    CHECK(near == far);
  };
  for (const auto& image : {std::pair{9, 16}, std::pair{8, 14}, std::pair{1, 7}}) {
    run(std::integral_constant<int, 1>{}, image);
    run(std::integral_constant<int, 2>{}, image);
  }
}
