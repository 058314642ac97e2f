// SPDX-License-Identifier: Apache-2.0
// Convolutions whose maps run on sums in registers have the bits of the convolution and then the
// maps.
#include "xla/kernel/convolution/register_epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/threads.hpp"
#include "xla/kernel/gemm/long_k.hpp"

namespace {

using count = std::int64_t;
using xla::kernel::conv_direction;
using xla::kernel::conv_sizes;
using xla::kernel::conv_weights;
using epilogue = xla::kernel::register_epilogue<float>;
using map = xla::kernel::register_map<float>;

std::vector<float> numbers(count n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(random));
  return v;
}

conv_sizes sizes(count batch, count height, count width, count in, count out, count kernel,
                 count stride, count padding, count groups) {
  const auto size = [&](count n) { return (n + 2 * padding - kernel) / stride + 1; };
  return {.batch = batch,
          .height = height,
          .width = width,
          .in = in,
          .out_height = size(height),
          .out_width = size(width),
          .out = out,
          .kernel = {kernel, kernel},
          .stride = {stride, stride},
          .padding = {padding, padding},
          .dilation = {1, 1},
          .groups = groups};
}
/// A matrix product of `pixels` rows.
conv_sizes pixels(count height, count width, count in, count out) {
  return sizes(1, height, width, in, out, 1, 1, 0, 1);
}
conv_sizes depthwise(count height, count width, count channels, count kernel, count stride) {
  return sizes(2, height, width, channels, channels, kernel, stride, kernel / 2, channels);
}

/// The operands of maps on a result.
struct operands {
  std::vector<float> mean, scale, bias, shortcut;
  float low = -0.5f, high = 0.75f;

  explicit operands(const conv_sizes& s)
      : mean(numbers(s.out, 3)),
        scale(numbers(s.out, 4)),
        bias(numbers(s.out, 5)),
        shortcut(numbers(s.batch * s.out_height * s.out_width * s.out, 6)) {}

  map center_scale() const { return {map::center_scale, mean.data(), scale.data()}; }
  map add_bias() const { return {map::add_channel, bias.data()}; }
  map add_shortcut() const { return {map::add_element, shortcut.data()}; }
  map hardtanh() const { return {map::hardtanh, &low, &high}; }
};

/// One map of one element, as its op computes it.
float apply(const map& m, float x, std::size_t element, std::size_t channel) {
  switch (m.what) {
    case map::center_scale: {
      const volatile float centred = x - m.a[channel];  // one rounding each
      return centred * m.b[channel];
    }
    case map::add_channel: return x + m.a[channel];
    case map::add_element: return x + m.a[element];
    case map::relu: return x > 0 ? x : 0;
    case map::hardtanh: return std::min(std::max(x, *m.a), *m.b);
  }
  return NAN;
}

/// The bits of the convolution and then the maps, on any number of threads.
void check(const conv_sizes& s, const std::vector<map>& maps, bool packed = false) {
  CAPTURE(s.height, s.width, s.in, s.out, s.kernel[0], s.stride[0], maps.size(), packed);
  const auto x = numbers(s.batch * s.height * s.width * s.in, 1);
  const auto weights = numbers(s.out * s.in / s.groups * s.taps(), 2);
  conv_weights<float> w{weights.data(), s.in / s.groups * s.taps(), s.taps(), 1};
  std::vector<float> panels;
  if (packed) {
    panels.resize(
        static_cast<std::size_t>(xla::kernel::conv_packed_size<float>(s, conv_direction::forward)));
    REQUIRE(!panels.empty());
    xla::kernel::conv_pack(s, conv_direction::forward, w, panels.data());
    w.packed = panels.data();
  }
  const auto results = static_cast<std::size_t>(s.batch * s.out_height * s.out_width * s.out);
  std::vector<float> want(results);
  xla::kernel::conv_forward(s, x.data(), w, want.data());
  for (std::size_t i = 0; i < results; ++i)
    for (const map& m : maps) want[i] = apply(m, want[i], i, i % static_cast<std::size_t>(s.out));
  for (const int threads : {1, 2, 5}) {
    const test::restore_threads some(threads);
    std::vector<float> got(results + 1, 77);
    epilogue all;
    all.result = got.data();
    all.count = static_cast<int>(maps.size());
    std::copy(maps.begin(), maps.end(), all.maps);
    REQUIRE(xla::kernel::conv_takes_maps(s, all));
    xla::kernel::conv_with_maps(s, x.data(), w, got.data(), all);
    CHECK(got.back() == 77);
    got.pop_back();
    CHECK(got == want);
  }
}

/// Whether there is a kernel for such a convolution, with a shortcut or without.
bool has_kernel(const conv_sizes& s, bool shortcut = false) {
  const float one = 1;
  epilogue maps;
  if (shortcut) maps.shortcut = &one;
  return xla::kernel::conv_takes_maps(s, maps);
}

constexpr count width = xla::kernel::lanes<float>;

}  // namespace

TEST_CASE("each map, and chains of them, after a convolution of one pixel") {
  const conv_sizes s = pixels(12, 11, 24, 4 * width);
  const operands o(s);
  check(s, {o.center_scale()});
  check(s, {o.add_bias()});
  check(s, {o.add_shortcut()});
  check(s, {{}});
  check(s, {o.hardtanh()});
  check(s, {o.center_scale(), o.add_bias(), o.hardtanh()});
  check(s, {o.center_scale(), o.add_bias(), o.add_shortcut(), {}});
  check(s, {o.add_shortcut(), o.center_scale(), {}, o.add_bias(), o.add_shortcut(), o.hardtanh()});
}
TEST_CASE("hardtanh after a convolution gives NaN if a bound is NaN") {
  const conv_sizes s = pixels(9, 10, 16, 2 * width);
  const auto x = numbers(90 * 16, 1), weights = numbers(s.out * 16, 2);
  for (const bool upper : {false, true}) {
    operands o(s);
    (upper ? o.high : o.low) = NAN;
    std::vector<float> got(static_cast<std::size_t>(90 * s.out));
    epilogue all;
    all.result = got.data();
    all.count = 1;
    all.maps[0] = o.hardtanh();
    xla::kernel::conv_with_maps(s, x.data(), {weights.data(), 16, 1, 1}, got.data(), all);
    CHECK(std::all_of(got.begin(), got.end(), [](float y) { return std::isnan(y); }));
  }
}
TEST_CASE("maps after convolutions of one pixel of many sizes") {
  for (const count out : {2 * width, 3 * width, 5 * width, 10 * width})
    for (const count in : {1, 16, 100, 512, 600, 1024}) {  // up to two blocks of sums
      const conv_sizes s = pixels(9, 10, in, out);
      const operands o(s);
      check(s, {o.center_scale(), o.add_bias(), o.add_shortcut(), o.hardtanh()});
      check(s, {o.center_scale(), o.add_bias(), o.add_shortcut(), o.hardtanh()}, true);
    }
  const conv_sizes large = pixels(57, 64, 32, 12 * width);  // whose results leave the cache
  const operands o(large);
  check(large, {o.center_scale(), o.add_bias(), o.hardtanh()});
}
TEST_CASE("maps after depthwise convolutions") {
  for (const count kernel : {3, 5})
    for (const count stride : {1, 2})
      for (const count channels : {width, 3 * width, 12 * width}) {
        const conv_sizes s = depthwise(15, 17, channels, kernel, stride);
        const operands o(s);
        check(s, {o.center_scale(), o.add_bias(), o.hardtanh()});
        check(s, {o.add_bias(), o.add_shortcut(), {}}, true);
      }
  const conv_sizes small = depthwise(3, 3, 2 * width, 3, 1);  // no strips of columns
  const operands o(small);
  check(small, {o.center_scale(), o.add_bias(), {}});
}
TEST_CASE("convolutions without a kernel that runs maps in registers") {
  CHECK(has_kernel(pixels(9, 9, 20, 2 * width)));
  CHECK_FALSE(has_kernel(pixels(9, 9, 20, 2 * width + 1)));  // no whole vectors of channels
  CHECK_FALSE(has_kernel(pixels(9, 9, 1025, 2 * width)));    // sums in three blocks
  CHECK_FALSE(has_kernel(pixels(2, 2, 20, 2 * width)));      // an order of sums of its own
  CHECK_FALSE(has_kernel(pixels(9, 9, 0, 2 * width)));
  CHECK_FALSE(has_kernel(pixels(0, 9, 20, 2 * width)));
  CHECK_FALSE(has_kernel(sizes(1, 9, 9, 20, 2 * width, 3, 1, 1, 1)));  // a larger kernel
  CHECK_FALSE(has_kernel(sizes(1, 9, 9, 2 * width, 2 * width, 1, 2, 0, 1)));
  CHECK_FALSE(has_kernel(sizes(1, 9, 9, 4 * width, 4 * width, 1, 1, 0, 2)));
  CHECK(has_kernel(depthwise(9, 9, width, 3, 1)));
  CHECK_FALSE(has_kernel(depthwise(9, 9, width, 7, 1)));      // no strips of such a kernel
  CHECK_FALSE(has_kernel(depthwise(9, 9, width + 1, 3, 1)));  // no whole vectors
  // A shortcut, unless it is an image of tens of megabytes.
  CHECK(has_kernel(pixels(9, 9, 20, 2 * width), true));
  CHECK(has_kernel(pixels(3000, 3000, 20, 2 * width)));
  CHECK_FALSE(has_kernel(pixels(3000, 3000, 20, 2 * width), true));
}
